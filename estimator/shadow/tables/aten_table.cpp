#include "estimator/shadow/tables/aten_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "estimator/base/error.h"
#include "estimator/base/text.h"

namespace headroom::aten {
namespace {

[[noreturn]] void malformed(std::string_view what, std::string_view line) {
  throw bad_input("ATen table: " + std::string(what), "'" + std::string(line.substr(0, 160)) + "'");
}

/// The part of `rest` up to `separator`, which is cut off with it.
std::string_view cut(std::string_view& rest, std::string_view separator) {
  const std::size_t at = rest.find(separator);
  const std::string_view front = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view{} : rest.substr(at + separator.size());
  return front;
}

bool accept(std::string_view& rest, std::string_view token) {
  if (!rest.starts_with(token)) return false;
  rest.remove_prefix(token.size());
  return true;
}

std::string_view letters(std::string_view& rest) {
  std::size_t n = 0;
  while (n < rest.size() && (std::isalnum(static_cast<unsigned char>(rest[n])) || rest[n] == '_')) ++n;
  const std::string_view word = rest.substr(0, n);
  rest.remove_prefix(n);
  return word;
}

Type type_named(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, Type>, 13> types{{{"Tensor", Type::tensor},
                                                                            {"int", Type::integer},
                                                                            {"SymInt", Type::integer},
                                                                            {"DeviceIndex", Type::integer},
                                                                            {"float", Type::real},
                                                                            {"Scalar", Type::scalar},
                                                                            {"bool", Type::boolean},
                                                                            {"SymBool", Type::boolean},
                                                                            {"str", Type::text},
                                                                            {"ScalarType", Type::dtype},
                                                                            {"Layout", Type::layout},
                                                                            {"Device", Type::device},
                                                                            {"MemoryFormat", Type::memory_format}}};
  const auto at = std::find_if(types.begin(), types.end(), [&](const auto& t) { return t.first == name; });
  return at == types.end() ? Type::other : at->second;
}

/// What the type of an argument or a return says.
struct TypeText {
  Type type = Type::other;
  bool list = false;
  bool optional = false;
  bool optional_elements = false;
  bool written = false;
  char alias = 0;
  std::int16_t list_size = 0;
};

/// "Tensor(a!)", "Tensor?[]", "SymInt[2]?", "Tensor(a -> *)" at the front of `rest`.
TypeText read_type(std::string_view& rest, std::string_view line) {
  TypeText t;
  t.type = type_named(letters(rest));
  if (accept(rest, "(")) {
    const std::string_view annotation = cut(rest, ")");
    if (annotation.empty()) malformed("an alias annotation without name", line);
    t.alias = annotation[0];
    t.written = annotation.find('!') != std::string_view::npos;
  }
  t.optional = accept(rest, "?");
  if (accept(rest, "[")) {
    const std::string_view size = cut(rest, "]");
    t.list = true;
    t.optional_elements = std::exchange(t.optional, accept(rest, "?"));
    if (!size.empty()) t.list_size = static_cast<std::int16_t>(parse_int(size).value_or(0));
  }
  return t;
}

Literal read_literal(std::string_view text, std::string_view line) {
  Literal l;
  if (text == "None") return l;
  if (text == "True" || text == "False") {
    l.kind = Literal::Kind::boolean;
    l.integer = text == "True";
  } else if (text == "Mean") {  // at::Reduction::Mean
    l.kind = Literal::Kind::integer;
    l.integer = 1;
  } else if (text == "long") {
    l.kind = Literal::Kind::dtype;
    l.integer = static_cast<std::int64_t>(DType::i64);
  } else if (text.starts_with('[')) {
    l.kind = Literal::Kind::integers;
    std::string_view inside = text.substr(1);
    inside = cut(inside, "]");
    while (!inside.empty()) {
      const auto value = parse_int(trim(cut(inside, ",")));
      if (!value) malformed("a default that is no list of integers", line);
      l.integers.push_back(*value);
    }
  } else if (text.starts_with('"') || text.starts_with('\'')) {
    l.kind = Literal::Kind::text;
    l.text = text.substr(1, text.size() - 2);
  } else if (const auto integer = parse_int(text)) {
    l.kind = Literal::Kind::integer;
    l.integer = *integer;
  } else if (std::from_chars(text.data(), text.data() + text.size(), l.real).ec == std::errc{}) {
    l.kind = Literal::Kind::real;
  } else {
    l.kind = Literal::Kind::text;  // contiguous_format
    l.text = text;
  }
  return l;
}

Argument read_argument(std::string_view text, bool keyword_only, std::string_view line) {
  std::string_view rest = text;
  const TypeText t = read_type(rest, line);
  Argument a;
  a.type = t.type;
  a.list = t.list;
  a.optional = t.optional;
  a.optional_elements = t.optional_elements;
  a.written = t.written;
  a.alias = t.alias;
  a.list_size = t.list_size;
  a.keyword_only = keyword_only;
  if (!accept(rest, " ")) malformed("an argument without name", line);
  a.name = letters(rest);
  if (a.name.empty()) malformed("an argument without name", line);
  if (accept(rest, "=")) {
    a.has_default = true;
    a.value = read_literal(rest, line);
  } else if (!rest.empty()) {
    malformed("unexpected text in an argument", line);
  }
  return a;
}

void read_schema(std::string_view text, OpSchema& op, std::string_view line) {
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(") -> ");
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    malformed("a schema without arguments or returns", line);
  op.name = text.substr(0, open);
  const std::size_t dot = op.name.find('.');
  op.base = op.name.substr(0, dot);
  if (dot != std::string_view::npos) op.overload = op.name.substr(dot + 1);

  std::string_view arguments = text.substr(open + 1, close - open - 1);
  bool keyword_only = false;
  while (!arguments.empty()) {
    const std::string_view one = cut(arguments, ", ");
    if (one == "*")
      keyword_only = true;
    else
      op.arguments.push_back(read_argument(one, keyword_only, line));
  }
  if (op.arguments.size() > 64) malformed("more than 64 arguments", line);

  std::string_view returns = text.substr(close + 5);
  if (accept(returns, "(")) {
    if (!returns.ends_with(')')) malformed("returns without ')'", line);
    returns.remove_suffix(1);
  }
  while (!returns.empty()) {
    std::string_view one = cut(returns, ", ");
    const TypeText t = read_type(one, line);
    Return r;
    r.type = t.type;
    r.list = t.list;
    r.written = t.written;
    r.alias = t.alias;
    if (accept(one, " ")) r.name = letters(one);
    op.view = op.view || (r.alias != 0 && !r.written);
    op.returns.push_back(r);
  }
  // Tensor(a -> *) … -> Tensor(a)[] and Tensor(a) … -> Tensor(a): the same letter on both sides.
  op.in_place = !op.arguments.empty() && op.arguments[0].written && op.base.ends_with('_');
}

Cast cast_named(std::string_view name, std::string_view line) {
  if (name == "low") return Cast::low;
  if (name == "fp32") return Cast::fp32;
  if (name == "fp32dtype") return Cast::fp32_dtype;
  if (name == "promote") return Cast::promote;
  if (name == "refused") return Cast::refused;
  malformed("an autocast policy that is not known", line);
}

/// Returns the functional form that an in-place operator refers to, or nothing.
std::string_view read_flags(std::string_view text, OpSchema& op, std::string_view line) {
  std::string_view functional;
  while (!text.empty()) {
    std::string_view flag = cut(text, " ");
    if (flag == "-") continue;
    if (flag == "implicit") {
      op.implicit = true;
    } else if (accept(flag, "cast=")) {
      op.cast = cast_named(flag, line);
    } else if (accept(flag, "as=")) {
      functional = flag;
    } else if (accept(flag, "diff=")) {
      op.differentiable = 0;
      for (std::size_t i = 0; i < flag.size() && i < 32; ++i)
        if (flag[i] == '1') op.differentiable |= 1U << i;
    } else {
      malformed("a flag that is not known", line);
    }
  }
  return functional;
}

/// Names that the formulas of an operator may use.
std::vector<FormulaName> names_of(const OpSchema& op) {
  std::vector<FormulaName> names;
  names.reserve(op.arguments.size() + 3 * op.returns.size() + 4);
  names.push_back({"grad", Kind::gradient, 0});
  names.push_back({"grads", Kind::gradients});
  names.push_back({"grad_input_mask", Kind::needed});
  static constexpr std::array<std::string_view, 10> numbered{"result0", "result1", "result2", "result3", "result4",
                                                             "result5", "result6", "result7", "result8", "result9"};
  if (op.returns.size() == 1) names.push_back({"result", Kind::result, 0});
  for (std::size_t i = 0; i < op.returns.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    if (i < numbered.size()) names.push_back({numbered[i], Kind::result, place});
    if (!op.returns[i].name.empty()) names.push_back({op.returns[i].name, Kind::result, place});
  }
  for (std::size_t i = 0; i < op.arguments.size(); ++i)
    names.push_back({op.arguments[i].name, Kind::argument, static_cast<std::int64_t>(i)});
  return names;
}

/// grad_NAME for every named output; the text behind the names is kept in `store`.
void add_gradient_names(const OpSchema& op, std::vector<FormulaName>& names, std::vector<std::string>& store) {
  store.reserve(op.returns.size());
  std::int64_t place = 0;
  for (std::size_t i = 0; i < op.returns.size(); ++i) {
    if (i < 32 && (op.differentiable >> i & 1U) == 0) continue;
    if (!op.returns[i].name.empty()) {
      store.push_back("grad_" + std::string(op.returns[i].name));
      names.push_back({store.back(), Kind::gradient, place});
    }
    ++place;
  }
}

void read_saved(std::string_view text, OpSchema& op, std::string_view line) {
  const std::vector<FormulaName> names = names_of(op);
  const auto find = [&](std::string_view name) {
    const auto at = std::find_if(names.rbegin(), names.rend(), [&](const FormulaName& n) { return n.name == name; });
    if (at == names.rend()) malformed("a saved tensor that is neither argument nor result", line);
    return *at;
  };
  while (!text.empty()) {
    std::string_view rest = cut(text, " ");
    if (rest == "-") continue;
    Saved s;
    s.name = cut(rest, "?");
    const FormulaName what = find(s.name);
    if (what.kind != Kind::argument && what.kind != Kind::result) malformed("a saved gradient", line);
    s.result = what.kind == Kind::result;
    s.index = static_cast<std::uint8_t>(what.index);
    while (!rest.empty()) {
      const FormulaName guard = find(cut(rest, ","));
      if (guard.kind != Kind::argument) malformed("a guard that is no argument", line);
      s.guards |= std::uint64_t{1} << guard.index;
    }
    op.saved.push_back(s);
  }
}

void read_derivatives(std::string_view text, OpSchema& op, const HelperTable& helpers, std::string_view line) {
  std::vector<FormulaName> names = names_of(op);
  std::vector<std::string> store;
  add_gradient_names(op, names, store);
  while (!text.empty()) {
    std::string_view rest = cut(text, " | ");
    std::string_view variables = cut(rest, ": ");
    Derivative d;
    d.text = rest;
    while (!variables.empty()) {
      const int place = op.argument(cut(variables, ","));
      if (place < 0) malformed("a derivative of something that is no argument", line);
      d.variables.push_back(static_cast<std::uint8_t>(place));
    }
    d.formula = parse_formula(rest, names, helpers);
    for (const FormulaNode& n : d.formula.nodes) {
      if (n.kind == Kind::argument) op.mentioned |= std::uint64_t{1} << n.index;
      if (n.kind == Kind::result) op.mentioned_results |= std::uint64_t{1} << n.index;
    }
    op.derivatives.push_back(std::move(d));
  }
}

void clone_saved_self(OpSchema& op) {
  if (!op.in_place) return;
  for (Saved& s : op.saved) s.cloned = !s.result && s.index == 0;
}

}  // namespace

bool OpSchema::saves_argument(std::size_t i) const {
  return std::any_of(saved.begin(), saved.end(), [&](const Saved& s) { return !s.result && s.index == i; });
}

int OpSchema::argument(std::string_view argument_name) const {
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name == argument_name) return static_cast<int>(i);
  return -1;
}

// ---- helpers
// ---------------------------------------------------------------------------------------------------------

HelperTable::HelperTable(std::string_view text) {
  // A function starts in the first column; its statements are indented.
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (!line.empty() && line[0] != ' ' && line[0] != '#' && line[0] != '}') {
      std::string_view rest = line;
      const std::string_view name = letters(rest);
      if (name.empty() || !rest.starts_with('(')) malformed("a line that is no head of a function", line);
      entries_.push_back({name, text.substr(at), nullptr});
    }
    at = end + 1;
  }
  std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
}

bool HelperTable::has(std::string_view name) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), name,
                                   [](const Entry& e, std::string_view n) { return e.name < n; });
  return at != entries_.end() && at->name == name;
}

const Helper& HelperTable::parsed(Entry& e) const {
  if (!e.helper) {
    std::string_view text = e.text;
    e.helper = std::make_unique<Helper>(parse_helper(text, *this));
  }
  return *e.helper;
}

const Helper* HelperTable::find(std::string_view name, std::size_t count) const {
  const std::scoped_lock lock(mutex_);
  auto at = std::lower_bound(entries_.begin(), entries_.end(), name,
                             [](const Entry& e, std::string_view n) { return e.name < n; });
  for (; at != entries_.end() && at->name == name; ++at) {
    const Helper& h = parsed(*at);
    if (count >= h.required && count <= h.parameters) return &h;
  }
  return nullptr;
}

std::vector<std::string_view> HelperTable::names() const {
  std::vector<std::string_view> names;
  for (const Entry& e : entries_) names.push_back(e.name);
  return names;
}

void HelperTable::parse_all() const {
  const std::scoped_lock lock(mutex_);
  for (Entry& e : entries_) parsed(e);
}

// ---- operators
// -------------------------------------------------------------------------------------------------------

Table::Table(std::string_view text, const HelperTable& helpers) : helpers_(helpers) {
  std::string_view title = cut(text, "\n");
  if (!accept(title, "# headroom aten table 1 | torch ")) malformed("not a table of this format", title);
  version_ = title;
  entries_.reserve(text.size() / 100);
  while (!text.empty()) {
    const std::string_view line = cut(text, "\n");
    if (line.empty()) continue;
    const std::string_view name = line.substr(0, line.find('('));
    if (!entries_.empty() && entries_.back().name >= name) malformed("a line that is out of order", line);
    entries_.push_back({name, line, nullptr});
  }
}

Table::Entry* Table::entry(std::string_view name) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), name,
                                   [](const Entry& e, std::string_view n) { return e.name < n; });
  return at != entries_.end() && at->name == name ? &*at : nullptr;
}

const OpSchema* Table::parsed(Entry& e) const {
  if (e.schema) return e.schema.get();
  auto op = std::make_unique<OpSchema>();
  std::string_view rest = e.line;
  read_schema(cut(rest, " | "), *op, e.line);
  const std::string_view functional = read_flags(cut(rest, " | "), *op, e.line);
  if (functional.empty()) {
    read_saved(cut(rest, " | "), *op, e.line);
    read_derivatives(rest, *op, helpers_, e.line);
  } else {
    Entry* other = entry(functional);
    if (!other || other == &e) malformed("an in-place form of an operator that is not there", e.line);
    const OpSchema& source = *parsed(*other);
    if (source.arguments.size() != op->arguments.size() || source.in_place)
      malformed("an in-place form whose arguments differ", e.line);
    op->saved = source.saved;
    op->derivatives = source.derivatives;
    op->mentioned = source.mentioned;
    op->mentioned_results = source.mentioned_results;
  }
  clone_saved_self(*op);
  e.schema = std::move(op);
  return e.schema.get();
}

const OpSchema* Table::find(std::string_view name) const {
  accept(name, "aten::");
  Entry* e = entry(name);
  if (!e) return nullptr;
  const std::scoped_lock lock(mutex_);
  return parsed(*e);
}

std::span<const OpSchema* const> Table::overloads(std::string_view base) const {
  accept(base, "aten::");
  const std::scoped_lock lock(mutex_);
  auto known = std::lower_bound(overloads_.begin(), overloads_.end(), base,
                                [](const auto& o, std::string_view n) { return o->base < n; });
  if (known == overloads_.end() || (*known)->base != base) {
    auto found = std::make_unique<Overloads>();
    auto at = std::lower_bound(entries_.begin(), entries_.end(), base,
                               [](const Entry& e, std::string_view n) { return e.name < n; });
    for (; at != entries_.end() && at->name.starts_with(base); ++at) {
      if (at->name.size() > base.size() && at->name[base.size()] != '.') break;
      found->schemas.push_back(parsed(*at));
    }
    if (found->schemas.empty()) return {};
    found->base = found->schemas[0]->base;
    known = overloads_.insert(known, std::move(found));
  }
  return (*known)->schemas;
}

std::vector<std::string_view> Table::names() const {
  std::vector<std::string_view> names;
  for (const Entry& e : entries_) names.push_back(e.name);
  return names;
}

}  // namespace headroom::aten
