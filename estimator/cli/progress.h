// Progress: a bar on standard error, where that is a terminal and the work takes a while.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>

namespace headroom::cli {

class Progress {
 public:
  /// `what`: "cells", "cards".
  Progress(std::size_t total, std::string what);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Takes the bar away.
  ~Progress();

  /// From any thread; draws at most ten times a second.
  void show(std::size_t done);

 private:
  std::size_t total_;
  std::string what_;
  bool wanted_;
  bool drawn_ = false;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace headroom::cli
