// Runs the lines of cases/*.txt; every operator with a rule has one.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "estimator/base/error.h"
#include "estimator/bind/operators/families.h"
#include "estimator/bind/shaped_graph.h"
#include "tests/bind/case_text.h"

using namespace headroom;
using namespace headroom::test;

namespace {

std::vector<std::string> lines() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(BIND_CASES)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> all;
  for (const auto& file : files) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);)
      if (!line.empty() && line[0] != '#') all.push_back(line);
  }
  return all;
}

void check(const Case& c) {
  const Model model = read_model(std::as_bytes(std::span(c.file)), {});
  const ShapedGraph graph = bind(model, c.bindings);
  const Node& last = model.graph().nodes.back();
  REQUIRE(last.outputs.size() == c.expected.size());
  for (std::size_t i = 0; i < c.expected.size(); ++i) {
    if (!last.outputs[i].valid()) continue;
    const bool contents = c.expected[i].find('{') != std::string::npos;
    CHECK(case_text_of(graph.at(last.outputs[i]), contents) == c.expected[i]);
  }
  for (const auto& code : c.says)
    CHECK_MESSAGE(std::any_of(graph.diagnostics.begin(), graph.diagnostics.end(),
                              [&](const Diagnostic& d) { return d.code == code; }),
                  "not said: ", code);
}

}  // namespace

TEST_CASE("cases") {
  for (const std::string& line : lines()) {
    CAPTURE(line);
    const Case c = parse_case(line);
    try {
      check(c);
      CHECK_MESSAGE(c.error == 0, "no error");
    } catch (const Error& e) {
      const std::string all = std::string(e.what()) + " | " + e.where() + " | " + e.hint();
      CAPTURE(all);
      CHECK(static_cast<int>(e.code()) == c.error);
      CHECK(all.find(c.error_part) != std::string::npos);
      CHECK(c.error != 0);
    }
  }
}

TEST_CASE("every operator with a rule has a case") {
  std::set<std::string> seen;
  for (const std::string& line : lines())
    for (const std::string& op : parse_case(line).operators) seen.insert(op);
  for (const auto& family : operator_families())
    for (const auto& rule : family.rules) {
      const std::string name = std::string(family.domain) + "::" + std::string(rule.op_type);
      CHECK_MESSAGE(seen.contains(name), "no case for ", name);
    }
}

TEST_CASE("no operator has two rules") {
  std::set<std::string> seen;
  for (const auto& family : operator_families())
    for (const auto& rule : family.rules)
      CHECK(seen.insert(std::string(family.domain) + "::" + std::string(rule.op_type)).second);
}
