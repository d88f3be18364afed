// Calls that PyTorch's dispatcher would accept: names, number and kinds of arguments against PyTorch's own schemas.
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "estimator/base/text.h"
#include "estimator/recover/keyword_arguments.h"
#include "tests/recover/cases.h"

using namespace headroom;
using namespace headroom::test;

namespace {

struct SchemaArgument {
  std::string type, name;
  bool keyword_only = false, has_default = false;
};

/// "add.Tensor" -> its arguments, from the committed table.
const std::map<std::string, std::vector<SchemaArgument>>& schemas() {
  static const auto all = [] {
    std::map<std::string, std::vector<SchemaArgument>> out;
    std::ifstream in(ATEN_TABLE);
    REQUIRE(in);
    for (std::string line; std::getline(in, line);) {
      const std::size_t open = line.find('('), arrow = line.find(") -> ");
      if (line.starts_with('#') || open == std::string::npos || arrow == std::string::npos) continue;
      std::vector<SchemaArgument>& arguments = out[line.substr(0, open)];
      bool keyword = false;
      std::string one;
      int depth = 0;
      const std::string list = line.substr(open + 1, arrow - open - 1) + ",";
      for (const char c : list) {
        depth += (c == '(' || c == '[') - (c == ')' || c == ']');
        if (c != ',' || depth) {
          one += c;
          continue;
        }
        const std::string text(trim(one));
        one.clear();
        if (text == "*") keyword = true;
        if (text.empty() || text == "*") continue;
        const std::string before_default = text.substr(0, text.find('='));
        const std::size_t space = before_default.rfind(' ');
        arguments.push_back({before_default.substr(0, space), before_default.substr(space + 1), keyword,
                             text.find('=') != std::string::npos});
      }
    }
    return out;
  }();
  return all;
}

bool suits(const Arg& a, const SchemaArgument& s) {
  const auto is = [&](std::string_view word) { return s.type.find(word) != std::string::npos; };
  const bool list = is("[");
  if (std::holds_alternative<Unset>(a)) return s.has_default || is("?");
  if (std::holds_alternative<None>(a)) return is("?");
  if (std::holds_alternative<SlotId>(a)) return is("Tensor") && !list;
  if (std::holds_alternative<Slots>(a)) return is("Tensor") && list;
  if (std::holds_alternative<Dims>(a)) return (is("int") || is("SymInt")) && list;
  if (std::holds_alternative<bool>(a)) return is("bool") || is("Scalar");
  if (std::holds_alternative<std::int64_t>(a))
    return is("int") || is("SymInt") || is("Scalar") || is("Tensor") || is("float");
  if (std::holds_alternative<double>(a)) return is("float") || is("Scalar") || is("Tensor");
  if (std::holds_alternative<Text>(a)) return is("str") || is("MemoryFormat");
  return is("ScalarType");  // DType, DTypeOf
}

}  // namespace

TEST_CASE("every call fits its schema") {
  for (const std::string& name : case_names())
    for (const bool training : {true, false}) {
      const Program p = recovered(name, {training});
      for (const Call& c : p.calls) {
        const std::string& op = p.name_of(c.op);
        CAPTURE(name);
        CAPTURE(op);
        REQUIRE(op.starts_with("aten::"));
        const auto it = schemas().find(op.substr(6));
        REQUIRE(it != schemas().end());
        REQUIRE(c.args.size() <= it->second.size());
        for (std::size_t i = 0; i < it->second.size(); ++i) {
          CAPTURE(it->second[i].name);
          CHECK(suits(i < c.args.size() ? c.args[i] : Arg(Unset{}), it->second[i]));
        }
      }
    }
}

TEST_CASE("keyword-only arguments stand where PyTorch's schemas have them") {
  for (const recovery::KeywordArguments& k : recovery::keyword_arguments()) {
    std::string op(k.target.substr(5));
    if (op.ends_with(".default")) op.resize(op.size() - 8);
    CAPTURE(op);
    const auto it = schemas().find(op);
    REQUIRE(it != schemas().end());
    std::size_t positional = 0;
    std::string names;
    for (const SchemaArgument& a : it->second) {
      positional += !a.keyword_only;
      if (a.keyword_only) names += (names.empty() ? "" : ",") + a.name;
    }
    CHECK(positional == k.positional);
    CHECK(names == k.names);
  }
}
