// The heap of a program that lives for milliseconds: operator new and delete for small blocks. An estimate makes a
// hundred thousand of them and more; with glibc's malloc, which merges neighbours, a fifth of its instructions went
// there.
//
// Blocks of one size class lie in spans of their own, inside one reserved range of addresses, so that a block's address
// tells its class. A freed block goes on a list of its class and thread, and is handed out next; memory is never given
// back to the system. Larger blocks, and all of them where the range is not to be had, are malloc's.
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t unit = 16;  // what operator new aligns to
constexpr std::size_t largest_small = 1024;
constexpr std::size_t span_bytes = std::size_t{32} << 10;
constexpr std::size_t range_bytes = std::size_t{16} << 30;
constexpr std::size_t step_bytes = std::size_t{2} << 20;  // of the range, made usable at once; a huge page

struct Block {
  Block* next;
};

/// The reserved addresses, and the class of every span handed out of them.
class Range {
 public:
  /// A fresh span for blocks of `size_class`; null when there is none.
  char* span(std::uint8_t size_class) {
    while (busy_.test_and_set(std::memory_order_acquire)) {
    }
    char* const at = next_span();
    if (at != nullptr) class_of_[index_of(at)] = size_class;
    busy_.clear(std::memory_order_release);
    return at;
  }

  bool holds(const void* p) const { return offset_of(p) < range_bytes && begin() != nullptr; }
  std::uint8_t class_of(const void* p) const { return class_of_[index_of(p)]; }

 private:
  char* begin() const { return begin_.load(std::memory_order_relaxed); }
  std::size_t offset_of(const void* p) const {
    return reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(begin());
  }
  std::size_t index_of(const void* p) const { return offset_of(p) / span_bytes; }

  char* next_span() {
    if (next_ == usable_ && !grow()) return nullptr;
    char* const at = next_;
    next_ += span_bytes;
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
  std::array<std::uint8_t, range_bytes / span_bytes> class_of_ = {};
};

/// The free blocks of one thread, by class: those given back, then what is left of the newest span.
struct Class {
  Block* free = nullptr;
  char* fresh = nullptr;
  char* fresh_end = nullptr;
};

constinit Range range;
constinit thread_local std::array<Class, largest_small / unit + 1> classes = {};

void* from_malloc(std::size_t bytes) {
  void* const p = std::malloc(bytes);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

[[gnu::noinline]] void* from_span(Class& c, std::size_t size_class) {
  const std::size_t bytes = size_class * unit;
  if (static_cast<std::size_t>(c.fresh_end - c.fresh) < bytes) {
    c.fresh = range.span(static_cast<std::uint8_t>(size_class));
    c.fresh_end = c.fresh == nullptr ? nullptr : c.fresh + span_bytes;
    if (c.fresh == nullptr) return from_malloc(bytes);
  }
  char* const block = c.fresh;
  c.fresh += bytes;
  return block;
}

void give_back(void* p) noexcept {
  if (!range.holds(p)) return std::free(p);
  Class& c = classes[range.class_of(p)];
  c.free = new (p) Block{c.free};
}

}  // namespace

void* operator new(std::size_t bytes) {
  if (bytes > largest_small) return from_malloc(bytes);
  const std::size_t size_class = bytes == 0 ? 1 : (bytes + unit - 1) / unit;
  Class& c = classes[size_class];
  if (c.free == nullptr) return from_span(c, size_class);
  Block* const block = c.free;
  c.free = block->next;
  return block;
}

void operator delete(void* p) noexcept { give_back(p); }
void operator delete(void* p, std::size_t) noexcept { give_back(p); }
