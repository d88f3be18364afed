// Predicted times of calls beside kernel times measured on an H200 (tests/truth/rates/calls.tar.xz, made by
// tests/gpu/calls.py).
#include "estimator/plan/checkpoint/call_cost.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "estimator/base/text.h"

namespace headroom {
namespace {

/// "float32:8x512x768:gc"
CostTensor tensor_of(std::string_view text) {
  const auto parts = split(text, ':');
  CostTensor t{.dtype = dtype_named(parts.at(0)),
               .needs_grad = parts.at(2).find('g') != std::string_view::npos,
               .contiguous = parts.at(2).find('c') != std::string_view::npos};
  if (!parts[1].empty())
    for (const auto size : split(parts[1], 'x')) t.dims.push_back(std::stoll(std::string(size)));
  return t;
}

std::vector<CostTensor> tensors_of(std::string_view text) {
  std::vector<CostTensor> out;
  if (!text.empty())
    for (const auto one : split(text, ' ')) out.push_back(tensor_of(one));
  return out;
}

struct Sum {
  double predicted = 0, measured = 0;  ///< microseconds
  double ratio() const { return predicted / measured; }
};
struct Sums {
  Sum forward, backward;
  double share(double Sum::*of) const { return forward.*of / (forward.*of + backward.*of); }
};

TEST_CASE("the time of a step's calls, and what a rerun takes of it, are as on the card") {
  std::map<std::string, Sums> steps, operators;
  std::ifstream in(CALLS);
  for (std::string line; std::getline(in, line);) {
    const auto f = split(line, '\t');
    REQUIRE(f.size() == 11);
    const auto inputs = tensors_of(f[7]), outputs = tensors_of(f[8]);
    const CallCost c = cost_of({.op = f[4],
                                .inputs = inputs,
                                .outputs = outputs,
                                .view = f[5] == "view",
                                .causal = f[6].find("causal") != std::string_view::npos,
                                .dropout = f[6].find("dropout") != std::string_view::npos},
                               {.autocast = f[1] == "amp-bf16" ? DType::bf16 : DType::undefined});
    const double count = std::stod(std::string(f[3]));
    for (Sums* s : {&steps[std::string(f[0]) + " " + std::string(f[1]) + " x" + std::string(f[2])],
                    &operators[std::string(f[4]) + (f[1] == "fp32" ? "" : " " + std::string(f[1]))]}) {
      s->forward.predicted += count * static_cast<double>(c.forward_work) / 1e6;
      s->backward.predicted += count * static_cast<double>(c.backward_work) / 1e6;
      s->forward.measured += count * std::stod(std::string(f[9]));
      s->backward.measured += count * std::stod(std::string(f[10]));
    }
  }
  // For a new fit.
  const bool told = std::getenv("HEADROOM_TELL") != nullptr;
  if (told)
    for (const auto& [name, s] : operators)
      if (s.forward.measured + s.backward.measured > 5e3)
        std::cerr << name << ": " << s.forward.ratio() << ' ' << s.backward.ratio() << " of "
                  << s.forward.measured / 1e3 << " and " << s.backward.measured / 1e3 << " ms\n";
  for (const auto& [name, s] : steps) {
    INFO(name);
    if (told)
      std::cerr << name << ": " << s.forward.ratio() << ' ' << s.backward.ratio() << " share "
                << s.share(&Sum::predicted) / s.share(&Sum::measured) << '\n';
    CHECK(std::abs(s.forward.ratio() - 1) < 0.25);
    CHECK(std::abs(s.backward.ratio() - 1) < 0.36);
    CHECK(std::abs(s.share(&Sum::predicted) / s.share(&Sum::measured) - 1) < 0.12);
  }
}

}  // namespace
}  // namespace headroom
