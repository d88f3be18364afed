// The text of a torch.fx node, as `pkg.torch.onnx.fx_node` holds it:
//   %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, 1), kwargs = {alpha: 2})
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace headroom::recovery {

struct FxArg {
  enum class Kind : std::uint8_t {
    none,
    reference,  ///< `text` is the name without %
    integer,
    real,
    boolean,  ///< `integer` is 0 or 1
    word,     ///< torch.float32, cpu, a quoted string (without quotes)
    list,     ///< `items`; tuples too
  };
  Kind kind = Kind::none;
  std::int64_t integer = 0;
  double real = 0;
  std::string_view text;
  std::vector<FxArg> items;

  bool is(Kind k) const { return kind == k; }
  bool is_reference() const { return kind == Kind::reference; }
};

struct FxKeyword {
  std::string_view name;
  FxArg value;
};

struct FxNode {
  std::string_view name;    ///< "add"
  std::string_view target;  ///< "aten.add.Tensor": without "torch.ops."; "operator.getitem"
  std::vector<FxArg> args;
  std::vector<FxKeyword> kwargs;

  const FxArg* arg(std::size_t i) const { return i < args.size() ? &args[i] : nullptr; }
  const FxArg* keyword(std::string_view wanted) const {
    for (const auto& k : kwargs)
      if (k.name == wanted) return &k.value;
    return nullptr;
  }
};

/// Name in front of " :"; empty when the text is no fx node.
std::string_view fx_name(std::string_view text);
/// nullopt when the text is opaque. Nesting beyond 32 lists is opaque too.
std::optional<FxNode> parse_fx_node(std::string_view text);

/// The elements of a Python list of strings, "['', 'm', 'm.h']", without their quotes.
std::vector<std::string_view> parse_string_list(std::string_view text);

}  // namespace headroom::recovery
