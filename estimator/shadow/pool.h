// Pooled: objects that a step makes and frees by the thousand.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace headroom::shadow {

/// `class T : Pooled<T>`: what a freed T leaves is the thread's next T. malloc keeps few such places, and merges the
/// others with their neighbours before it cuts them out again.
template <class T>
class Pooled {
 public:
#ifndef __SANITIZE_ADDRESS__  // which finds no use after free in memory that is kept
  static void* operator new(std::size_t bytes) {
    Place*& first = places().first;
    if (!first) return ::operator new(bytes);
    Place* const place = first;
    first = place->next;
    return place;
  }
  static void operator delete(void* p) {
    Place*& first = places().first;
    first = new (p) Place{first};
  }
  /// For containers' elements that are made in place.
  static void* operator new(std::size_t, void* at) { return at; }

 private:
  struct Place {
    Place* next;
  };
  struct Places {
    Place* first = nullptr;
    ~Places() {
      while (first) ::operator delete(std::exchange(first, first->next));
    }
  };
  static Places& places() {
    static thread_local Places places;
    return places;
  }
#endif
};

}  // namespace headroom::shadow
