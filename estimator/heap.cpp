// The heap of a program that lives for milliseconds: operator new and delete. An estimate makes a hundred thousand
// blocks and more; with glibc's malloc, which merges neighbours, a fifth of its instructions went there, and in a
// virtual machine a page fault for every 4 KiB took as long again.
//
// Blocks of one size class lie in spans of their own, inside one reserved range of huge pages, so that a block's
// address tells its class. A freed block goes on a list of its class and thread, and is handed out next. What a thread
// frees and does not use again, since another allocates it, goes to all in bundles; a thread that ends leaves its lists
// to one that begins. Memory is never given back to the system. Blocks above 32 MiB, and all
// of them where the range is not to be had, are malloc's.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <thread>
#include <utility>

namespace {

constexpr std::size_t unit = 16;  // what operator new aligns to
constexpr std::size_t largest_small = 1024;
constexpr std::size_t largest = std::size_t{32} << 20;
constexpr std::size_t small_span = std::size_t{8} << 10;
constexpr std::size_t granule = 1024;  // spans begin at multiples of it
constexpr std::size_t range_bytes = std::size_t{16} << 30;
constexpr std::size_t step_bytes = std::size_t{2} << 20;  // of the range, made usable at once; a huge page

/// Sizes of small blocks are multiples of the unit; above there are four to every doubling.
constexpr std::size_t small_classes = largest_small / unit + 1;
constexpr std::size_t first_width = std::bit_width(largest_small);

constexpr std::size_t class_of_size(std::size_t bytes) {
  if (bytes <= largest_small) return bytes == 0 ? 1 : (bytes + unit - 1) / unit;
  const std::size_t width = std::bit_width(bytes - 1);
  return small_classes + 4 * (width - first_width) + ((bytes - 1) >> (width - 3)) % 4;
}
constexpr std::size_t size_of_class(std::size_t size_class) {
  if (size_class < small_classes) return size_class * unit;
  const std::size_t past = size_class - small_classes;
  return (5 + past % 4) << (past / 4 + first_width - 3);
}
constexpr std::size_t class_count = class_of_size(largest) + 1;
static_assert(size_of_class(class_of_size(largest)) == largest && class_count <= 256);

struct Block {
  Block* next;
  Block* next_bundle;  ///< in the first block of a bundle
};
static_assert(sizeof(Block) <= unit);

/// Blocks that a thread frees more than it allocates before they go to all: half a MiB, but no fewer than four.
constexpr std::int32_t most_kept(std::size_t size_class) {
  return static_cast<std::int32_t>(std::max<std::size_t>((std::size_t{512} << 10) / size_of_class(size_class), 4));
}
constexpr auto kept_at_most = [] {
  std::array<std::int32_t, class_count> all{};
  for (std::size_t i = 1; i < class_count; ++i) all[i] = most_kept(i);
  return all;
}();

/// Held for a few instructions, or for the pages that the system hands out; the holder may sleep, so a waiter yields.
class Lock {
 public:
  explicit Lock(std::atomic_flag& busy) : busy_(busy) {
    while (busy_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() { busy_.clear(std::memory_order_release); }

 private:
  std::atomic_flag& busy_;
};

/// The reserved addresses, and the class of every span handed out of them.
class Range {
 public:
  /// A fresh span of `bytes` for blocks of `size_class`; null when there is none.
  char* span(std::size_t bytes, std::uint8_t size_class) {
    const Lock lock(busy_);
    char* const at = next_span(bytes);
    if (at != nullptr) std::fill_n(&class_of_[index_of(at)], bytes / granule, size_class);
    return at;
  }

  bool holds(const void* p) const { return offset_of(p) < range_bytes && begin() != nullptr; }
  std::uint8_t class_of(const void* p) const { return class_of_[index_of(p)]; }

 private:
  char* begin() const { return begin_.load(std::memory_order_relaxed); }
  std::size_t offset_of(const void* p) const {
    return reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(begin());
  }
  std::size_t index_of(const void* p) const { return offset_of(p) / granule; }

  char* next_span(std::size_t bytes) {
    while (static_cast<std::size_t>(usable_ - next_) < bytes)
      if (!grow()) return nullptr;
    char* const at = next_;
    next_ += bytes;
    return at;
  }

  bool grow() {
    if (begin() == nullptr && !reserve()) return false;
    if (offset_of(usable_) == range_bytes || mprotect(usable_, step_bytes, PROT_READ | PROT_WRITE) != 0) return false;
    usable_ += step_bytes;
    return true;
  }

  /// Without access: what is only reserved counts against no limit.
  bool reserve() {
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* const at = mmap(nullptr, range_bytes + step_bytes, PROT_NONE, flags, -1, 0);
    if (at == MAP_FAILED) return false;
    const std::size_t past = reinterpret_cast<std::uintptr_t>(at) % step_bytes;
    next_ = usable_ = static_cast<char*>(at) + (past != 0 ? step_bytes - past : 0);
    madvise(usable_, range_bytes, MADV_HUGEPAGE);
    begin_.store(usable_, std::memory_order_relaxed);
    return true;
  }

  std::atomic<char*> begin_ = nullptr;
  char* next_ = nullptr;
  char* usable_ = nullptr;
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  std::array<std::uint8_t, range_bytes / granule> class_of_ = {};
};

/// The free blocks of one thread, by class: those given back, then what is left of the newest span.
struct Class {
  Block* free = nullptr;
  std::int32_t surplus = 0;  ///< blocks freed less those handed out, since a bundle was given or taken
  char* fresh = nullptr;
  char* fresh_end = nullptr;
};

using Classes = std::array<Class, class_count>;

constinit Range range;
constinit thread_local Classes classes = {};

/// What threads freed of others, in bundles.
class Bundles {
 public:
  void put(std::size_t size_class, Block* bundle) {
    const Lock lock(busy_);
    bundle->next_bundle = std::exchange(first_[size_class], bundle);
  }
  /// null: there is none.
  Block* take(std::size_t size_class) {
    const Lock lock(busy_);
    Block* const bundle = first_[size_class];
    if (bundle != nullptr) first_[size_class] = bundle->next_bundle;
    return bundle;
  }

 private:
  std::array<Block*, class_count> first_ = {};
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
};

constinit Bundles bundles;

/// What threads left that have ended.
class Estate {
 public:
  void leave(Classes& from) {
    const Lock lock(busy_);
    if (count_ < left_.size()) left_[count_++] = std::exchange(from, {});
  }
  /// For a thread that has hardly any blocks yet.
  void inherit(Classes& to) {
    const Lock lock(busy_);
    if (count_ == 0) return;
    const Classes& from = left_[--count_];
    for (std::size_t i = 0; i < class_count; ++i) {
      Block** end = &to[i].free;
      while (*end != nullptr) end = &(*end)->next;
      *end = from[i].free;
      to[i].surplus += from[i].surplus;
      if (to[i].fresh == nullptr) {
        to[i].fresh = from[i].fresh;
        to[i].fresh_end = from[i].fresh_end;
      }
    }
  }

 private:
  std::array<Classes, 64> left_ = {};
  std::size_t count_ = 0;
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
};

constinit Estate estate;

struct Heir {
  Heir() { estate.inherit(classes); }
  ~Heir() { estate.leave(classes); }
};

void* from_malloc(std::size_t bytes) {
  void* const p = std::malloc(bytes);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

void* taken(Class& c) {
  Block* const block = c.free;
  c.free = block->next;
  // The next one was mostly freed long ago, and who takes it reads where the list goes on. Not at null: that would
  // cost a walk through the page tables.
  __builtin_prefetch(c.free != nullptr ? c.free : block);
  --c.surplus;
  return block;
}

/// A block of a fresh span.
void* from_range(Class& c, std::size_t size_class, std::size_t bytes) {
  if (bytes > largest_small)  // what lies there ready, up to twice as large, is better than fresh pages
    for (std::size_t larger = size_class + 1; larger < std::min(size_class + 5, class_count); ++larger)
      if (classes[larger].free != nullptr) return taken(classes[larger]);
  const std::size_t span = bytes > largest_small ? (bytes + granule - 1) / granule * granule : small_span;
  char* const block = range.span(span, static_cast<std::uint8_t>(size_class));
  if (block == nullptr) return from_malloc(bytes);
  c.fresh = block + bytes;
  c.fresh_end = block + span;
  return block;
}

[[gnu::noinline]] void* never_used(Class& c, std::size_t size_class) {
  static thread_local const Heir heir;
  if (c.free != nullptr) return taken(c);
  const std::size_t bytes = size_of_class(size_class);
  char* const block = c.fresh;
  if (static_cast<std::size_t>(c.fresh_end - block) < bytes) {
    c.free = bundles.take(size_class);
    if (c.free == nullptr) return from_range(c, size_class, bytes);
    c.surplus = kept_at_most[size_class];
    return taken(c);
  }
  c.fresh = block + bytes;
  return block;
}

void give_back(void* p) noexcept {
  if (!range.holds(p)) return std::free(p);
  const std::uint8_t size_class = range.class_of(p);
  Class& c = classes[size_class];
  c.free = new (p) Block{c.free, nullptr};
  if (++c.surplus > kept_at_most[size_class]) {
    bundles.put(size_class, std::exchange(c.free, nullptr));
    c.surplus = 0;
  }
}

}  // namespace

void* operator new(std::size_t bytes) {
  if (bytes > largest) return from_malloc(bytes);
  const std::size_t size_class = class_of_size(bytes);
  Class& c = classes[size_class];
  return c.free != nullptr ? taken(c) : never_used(c, size_class);
}

void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto to = static_cast<std::size_t>(alignment);
  if (to <= unit) return operator new(bytes);
  void* const p = std::aligned_alloc(to, (bytes + to - 1) / to * to);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

void operator delete(void* p) noexcept { give_back(p); }
void operator delete(void* p, std::size_t) noexcept { give_back(p); }
void operator delete(void* p, std::align_val_t) noexcept { give_back(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { give_back(p); }
