// Where the keyword-only arguments of an ATen call stand in its schema.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace headroom::recovery {

/// Position of argument `keyword` of `target` ("aten.add.Tensor"); nullopt for what a Program does not carry (device,
/// layout, pin_memory, generator) and for operators that have no such argument.
std::optional<std::size_t> keyword_position(std::string_view target, std::string_view keyword);

/// One operator's keyword-only arguments: the number of arguments in front, then their names, comma-separated.
struct KeywordArguments {
  std::string_view target;
  std::size_t positional;
  std::string_view names;
};
/// The whole list, for the test that holds it against PyTorch's schemas.
struct KeywordArgumentList {
  const KeywordArguments* begin_;
  const KeywordArguments* end_;
  const KeywordArguments* begin() const { return begin_; }
  const KeywordArguments* end() const { return end_; }
};
KeywordArgumentList keyword_arguments();

}  // namespace headroom::recovery
