// Sizes, strides and dtypes that the operators' rules give, against PyTorch's own, on the sample inputs of its tests.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "estimator/shadow/shadow.h"
#include "estimator/shadow/tables/aten_table.h"

namespace headroom {
namespace {

using nlohmann::json;
using namespace headroom::shadow;

Dims dims(const json& list) { return Dims(list.begin(), list.end()); }

/// [sizes, strides, dtype]
Tensor made(Shadow& m, const json& t) {
  return m.empty_strided(dims(t[0]), dims(t[1]), dtype_named(t[2].get_ref<const std::string&>()));
}

Value value_of(Shadow& m, const json& a) {
  if (a.is_null()) return {};
  if (a.is_boolean()) return a.get<bool>();
  if (a.is_number_integer()) return a.get<std::int64_t>();
  if (a.is_number()) return a.get<double>();
  if (a.contains("T")) return made(m, a["T"]);
  if (a.contains("d")) return dtype_named(a["d"].get_ref<const std::string&>());
  if (a.contains("s")) return std::string_view(a["s"].get_ref<const std::string&>());
  if (a.contains("f")) return a["f"] == "inf" ? HUGE_VAL : -HUGE_VAL;
  if (a.contains("i")) return dims(a["i"]);
  ValueList list;
  for (const json& e : a.is_array() ? a : a["L"]) list.push_back(value_of(m, e));
  return list;
}

/// Strides of dimensions of size 1, and of empty tensors, mean nothing.
std::string geometry(const Dims& sizes, Dims strides, std::string_view dtype) {
  const bool empty = element_count(sizes) == 0;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (empty || sizes[i] == 1) strides[i] = 0;
  return text_of(sizes) + " " + text_of(strides) + " " + std::string(dtype);
}

TEST_CASE("geometry of results") {
  std::ifstream file(CALLS_FILE);
  REQUIRE(file);
  const aten::Table& table = *aten::table_for("2.11").table;
  std::string line;
  int count = 0;
  while (std::getline(file, line)) {
    const json call = json::parse(line);
    const std::string op = call["op"];
    if (!table.find(op)) continue;  // newer than the table
    CAPTURE(op);
    CAPTURE(call["args"].dump());
    Shadow m(table, DeviceFacts{});
    std::vector<Value> args;
    for (const json& a : call["args"]) args.push_back(value_of(m, a));
    Outputs results = m.dispatch(op, args);
    std::vector<Value> flat;
    for (Value& r : results) {
      if (!r.is_list())
        flat.push_back(r);
      else
        flat.insert(flat.end(), r.list().begin(), r.list().end());
    }
    const json& wanted = call["out"];
    REQUIRE(flat.size() >= wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const Tensor& t = flat[i].tensor();
      REQUIRE(t);
      CHECK(geometry(t->sizes, t->strides, name_of(t->dtype)) ==
            geometry(dims(wanted[i][0]), dims(wanted[i][1]), wanted[i][2].get<std::string>()));
    }
    ++count;
  }
  CHECK(count > 1000);
}

}  // namespace
}  // namespace headroom
