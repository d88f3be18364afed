// Arena memory for what a Model holds, with one limit over all of it; and lists gathered from repeated fields.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace headroom {

/// What the reader takes from the heap, counted; a hostile file ends in MemoryLimit, not in a full machine.
class CountedMemory final : public std::pmr::memory_resource {
 public:
  struct MemoryLimit {};
  explicit CountedMemory(std::size_t limit) : limit_(limit) {}

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (bytes > limit_ - used_) throw MemoryLimit{};
    void* p = std::pmr::new_delete_resource()->allocate(bytes, alignment);
    used_ += bytes;
    return p;
  }
  void do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override {
    used_ -= bytes;
    std::pmr::new_delete_resource()->deallocate(p, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::size_t limit_;
  std::size_t used_ = 0;
};

using Arena = std::pmr::monotonic_buffer_resource;

template <class T>
std::span<T> copied(std::span<const T> list, Arena& arena) {
  static_assert(std::is_trivially_destructible_v<T>, "an arena runs no destructors");
  if (list.empty()) return {};
  auto* to = static_cast<T*>(arena.allocate(list.size() * sizeof(T), alignof(T)));
  std::uninitialized_copy(list.begin(), list.end(), to);
  return {to, list.size()};
}

template <class T>
T* copied(const T& item, Arena& arena) {
  return copied(std::span<const T>(&item, 1), arena).data();
}

inline std::string_view copied(std::string_view text, Arena& arena) {
  const auto kept = copied(std::span<const char>(text), arena);
  return {kept.data(), kept.size()};
}

/// Gathers one list whose length is not known beforehand. Lists in the making share one vector as a stack, so that
/// messages may nest; only the innermost one grows.
template <class T>
class Gathered {
 public:
  explicit Gathered(std::pmr::vector<T>& stack) : stack_(stack), begin_(stack.size()) {}
  Gathered(const Gathered&) = delete;
  Gathered& operator=(const Gathered&) = delete;
  ~Gathered() { stack_.resize(begin_); }

  void add(const T& item) { stack_.push_back(item); }
  std::span<T> items() const { return std::span<T>(stack_).subspan(begin_); }
  std::span<T> kept_in(Arena& arena) const { return copied(std::span<const T>(items()), arena); }

 private:
  std::pmr::vector<T>& stack_;
  std::size_t begin_;
};

}  // namespace headroom
