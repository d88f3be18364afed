// Table: what one PyTorch version says of its operators: schemas, aliases, autocast policy, tensors saved for backward,
// formulas of gradients. Written by scripts/aten-tables, embedded as text; a line is parsed when its operator is first
// asked for.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/dims.h"
#include "estimator/base/dtype.h"
#include "estimator/shadow/tables/formula.h"

namespace headroom::aten {

enum class Type : std::uint8_t {
  tensor,
  integer,  ///< int, SymInt
  real,     ///< float
  scalar,   ///< Scalar: any number
  boolean,
  text,
  dtype,
  layout,
  device,
  memory_format,
  other,  ///< Generator, Storage, Stream, …: never decides bytes
};

/// A default value as the schema writes it.
struct Literal {
  enum class Kind : std::uint8_t { none, integer, real, boolean, integers, text, dtype };
  Kind kind = Kind::none;
  std::int64_t integer = 0;  ///< also of a boolean (0, 1) and of a dtype
  double real = 0;
  Dims integers;
  std::string_view text;
};

struct Argument {
  std::string_view name;
  Type type = Type::other;
  bool list = false;
  bool optional = false;           ///< None may be passed; of a list: for the whole list
  bool optional_elements = false;  ///< Tensor?[]
  bool keyword_only = false;
  bool has_default = false;
  bool written = false;        ///< Tensor(a!)
  char alias = 0;              ///< 'a' of Tensor(a); 0: none
  std::int16_t list_size = 0;  ///< int[2]: 2 (one number stands for that many); 0: any
  Literal value;               ///< the default
};

struct Return {
  std::string_view name;  ///< empty where the schema gives none
  Type type = Type::tensor;
  bool list = false;
  bool written = false;
  char alias = 0;  ///< of the argument that it shares storage with; 0: new storage
};

/// How autocast treats an operator (ATen/autocast_mode.h).
enum class Cast : std::uint8_t { none, low, fp32, fp32_dtype, promote, refused };

/// A tensor (or list of tensors) that the operator's node keeps for backward.
struct Saved {
  std::string_view name;
  bool result = false;       ///< one of the results, else one of the arguments
  std::uint8_t index = 0;    ///< place among the arguments or the returns
  bool cloned = false;       ///< in place: a clone of self, made before the kernel runs
  std::uint64_t guards = 0;  ///< bits of arguments: saved only if one of them needs grad; 0: always
};

struct Derivative {
  boost::container::small_vector<std::uint8_t, 3> variables;  ///< places of the arguments it gives gradients of
  std::string_view text;
  Formula formula;
};

struct OpSchema {
  std::string_view name;      ///< "add.Tensor", without "aten::"
  std::string_view base;      ///< "add"
  std::string_view overload;  ///< "Tensor"; may be empty
  std::vector<Argument> arguments;
  boost::container::small_vector<Return, 2> returns;
  bool implicit = false;  ///< CompositeImplicitAutograd: decomposed into other operators
  bool in_place = false;  ///< name ends with "_": the first argument is written and returned
  bool view = false;      ///< a result shares an argument's storage and is not written
  Cast cast = Cast::none;
  /// The tensors kept, in the order in which release_variables() drops them.
  boost::container::small_vector<Saved, 3> saved;
  /// In the order in which the node runs them (alphabetical by variable).
  std::vector<Derivative> derivatives;
  std::uint64_t mentioned = 0;          ///< arguments that a formula names, so whose sizes, strides and dtype it needs
  std::uint64_t mentioned_results = 0;  ///< the same for results
  std::uint32_t differentiable = ~0U;   ///< bit i: output i can carry a gradient (output_differentiability)

  bool has_derivative() const { return !derivatives.empty(); }
  bool saves_argument(std::size_t i) const;
  /// Place of the argument; -1 when there is none of that name.
  int argument(std::string_view argument_name) const;
};

/// Functions of helpers.txt, parsed when first called.
class HelperTable final : public HelperNames {
 public:
  /// `text` must outlive this. Names are found in one pass; throws Error when a function's head cannot be read.
  explicit HelperTable(std::string_view text);

  bool has(std::string_view name) const override;
  /// The overload that takes `count` arguments, null when none does. Throws Error when its text is malformed.
  const Helper* find(std::string_view name, std::size_t count) const;
  /// Every name, with repetition for overloads, sorted.
  std::vector<std::string_view> names() const;
  /// Parses everything: for tests.
  void parse_all() const;

 private:
  struct Entry {
    std::string_view name;
    std::string_view text;
    std::unique_ptr<Helper> helper;
  };
  const Helper& parsed(Entry& e) const;

  mutable std::vector<Entry> entries_;  ///< sorted by name
  mutable std::mutex mutex_;
};

/// One PyTorch version. Safe to use from several threads.
class Table {
 public:
  /// `text` and `helpers` must outlive this. Throws Error when `text` is no table or out of order.
  Table(std::string_view text, const HelperTable& helpers);

  /// "2.11.0+cu130".
  std::string_view version() const { return version_; }
  /// "add.Tensor" or "aten::add.Tensor"; null when the version has no such operator. Throws Error when its line is
  /// malformed.
  const OpSchema* find(std::string_view name) const;
  /// Every overload of a base name ("add").
  std::span<const OpSchema* const> overloads(std::string_view base) const;
  const HelperTable& helpers() const { return helpers_; }
  std::vector<std::string_view> names() const;

 private:
  struct Entry {
    std::string_view name;
    std::string_view line;
    std::unique_ptr<OpSchema> schema;
  };
  struct Overloads {
    std::string_view base;
    std::vector<const OpSchema*> schemas;
  };
  const OpSchema* parsed(Entry& e) const;
  Entry* entry(std::string_view name) const;

  std::string_view version_;
  const HelperTable& helpers_;
  mutable std::vector<Entry> entries_;  ///< sorted by name
  mutable std::vector<std::unique_ptr<Overloads>> overloads_;
  mutable std::recursive_mutex mutex_;
};

/// The committed table for a torch version ("2.11", "2.12.1"): its own, or else the nearest; `exact` says which.
struct ChosenTable {
  const Table* table = nullptr;
  bool exact = false;
};
ChosenTable table_for(std::string_view torch_version);
/// "2.11", "2.13": the committed ones, ascending.
std::span<const std::string_view> table_versions();

}  // namespace headroom::aten
