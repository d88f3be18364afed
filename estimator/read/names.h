// Names: every value name of a file once, as a small number.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <string_view>
#include <vector>

#include "estimator/base/ids.h"
#include "estimator/read/arena.h"

namespace headroom {

/// A value's name as the file spells it; which value it means depends on the scope. Invalid: the empty name, "absent".
using Symbol = Id<struct SymbolTag>;

class Names {
 public:
  /// `copies`: where the texts of new symbols are copied to; null: their views are kept.
  Names(std::pmr::memory_resource& memory, Arena* copies)
      : copies_(copies), texts_(&memory), slots_(1024, Slot{}, &memory) {}

  Symbol symbol_of(std::string_view text);
  std::string_view text_of(Symbol s) const { return texts_[s.at()]; }
  std::size_t size() const { return texts_.size(); }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    Symbol symbol;
  };
  void grow();

  Arena* copies_;
  std::pmr::vector<std::string_view> texts_;
  std::pmr::vector<Slot> slots_;  // open addressing, at most half full, size a power of two
};

}  // namespace headroom
