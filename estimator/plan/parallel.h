// parallel_for: the same work for many indices, by several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace headroom {

/// Calls `work(i)` for every i < count, in about that order, from at most `threads` threads (0: as many as the machine
/// has cores). `work` must not throw.
template <class Work>
void parallel_for(std::size_t count, std::size_t threads, Work&& work) {
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  std::atomic<std::size_t> next{0};
  const auto worker = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> others;
  for (std::size_t t = 1; t < std::min(threads, count); ++t) others.emplace_back(worker);
  worker();
}

}  // namespace headroom
