#include "estimator/cli/progress.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "estimator/report/style.h"

namespace headroom::cli {

using namespace std::chrono_literals;

Progress::Progress(std::size_t total, std::string what)
    : total_(total),
      what_(std::move(what)),
      wanted_(::isatty(STDERR_FILENO) != 0),
      next_(std::chrono::steady_clock::now() + 500ms) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

void Progress::show(std::size_t done) {
  if (!wanted_) return;
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + 100ms;
  drawn_ = true;
  constexpr int width = 30;
  const std::string filled = report::bar(static_cast<double>(done) / static_cast<double>(total_), width);
  const std::string line = "\r\033[K" + filled + std::string(width - report::columns(filled), ' ') + "  " +
                           std::to_string(done) + " of " + std::to_string(total_) + " " + what_;
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace headroom::cli
