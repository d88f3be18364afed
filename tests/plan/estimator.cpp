// Estimator answers as one question alone does, whatever it was asked before and by how many threads.
#include "estimator/plan/estimator.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "estimator/plan/cards.h"
#include "estimator/plan/parallel.h"
#include "estimator/plan/sweep.h"
#include "estimator/read/graph.h"

namespace headroom {
namespace {

const std::filesystem::path zoo = HEADROOM_ZOO;

/// Everything that a question about memory has for an answer.
std::vector<std::int64_t> figures(const Estimate& e) {
  std::vector<std::int64_t> out{
      e.peak_allocated.count(),  e.peak_reserved.count(), e.peak_device.count(), e.margin_allocated.count(),
      e.margin_reserved.count(), e.margin_device.count(), e.rounding.count(),    e.gradient_bytes.count(),
      e.spare.count(),           e.fits.value_or(false),  e.out_of_memory};
  for (const Bytes b : e.categories) out.push_back(b.count());
  return out;
}

std::vector<Scenario> questions() {
  std::vector<Scenario> out;
  for (const std::int64_t batch : {1, 5, 16})
    for (const Precision precision : {Precision::fp32, Precision::amp_fp16})
      for (const auto* card : {"", "rtx3060", "h100"})
        for (const auto* conf : {"", "expandable_segments:True"}) {
          Scenario s{.batch = batch, .precision = precision, .alloc_conf = conf};
          if (*card) s.device = card_named(card).device;
          out.push_back(s);
        }
  return out;
}

TEST_CASE("shared stages change no figure") {
  const auto file = zoo / "mobilenet_v2.onnx";
  const std::vector<Scenario> all = questions();
  std::vector<std::vector<std::int64_t>> alone(all.size()), shared(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) alone[i] = figures(estimate(file, all[i]));
  Estimator estimator(file);
  parallel_for(all.size(), 4, [&](std::size_t i) { shared[i] = figures(estimator.estimate(all[i])); });
  CHECK(alone == shared);
  // Backwards: what was kept is met in another order.
  for (std::size_t i = all.size(); i-- > 0;) CHECK(figures(estimator.estimate(all[i])) == alone[i]);
}

TEST_CASE("a failure is the answer to all who ask, and harms nobody else") {
  Estimator estimator(zoo / "mlp.onnx");
  const Scenario wrong{.batch = 4, .freeze = {"no.such.parameter"}};
  for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(estimator.estimate(wrong), Error);
  CHECK(estimator.estimate({.batch = 4}).peak_allocated.count() > 0);
}

TEST_CASE("a sweep answers every cell in its place, failed ones with their error") {
  Estimator estimator(zoo / "mlp.onnx");
  Sweep sweep;
  sweep.axes = {{"alloc-conf", {"", "max_split_size_mb:64"}, false}, {"batch", {"8", "64", "8192"}, true}};
  for (const auto& conf : sweep.axes[0].values)
    for (const auto& batch : sweep.axes[1].values)
      sweep.cells.push_back({.estimate = {.scenario = {.batch = std::stoll(batch), .alloc_conf = conf}}, .error = {}});
  sweep.cells[4].estimate.scenario.freeze = {"no.such.parameter"};
  std::size_t done = 0;
  run_sweep(estimator, sweep, {.threads = 1, .progress = [&done](std::size_t n) { done = n; }});
  CHECK(done == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(sweep.cells[i].error.has_value() == (i == 4));
    if (i == 4) continue;
    CHECK(figures(sweep.cells[i].estimate) == figures(estimate(zoo / "mlp.onnx", sweep.cells[i].estimate.scenario)));
  }
  CHECK(sweep.place(5) == std::vector<std::size_t>{1, 2});
}

TEST_CASE("metadata that tells a call which cannot run gives way to the operators") {
  std::ifstream in(zoo / "bert_small.onnx", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const auto answer = [&] {
    Estimator estimator(std::make_shared<const Model>(read_model(std::as_bytes(std::span(bytes)), {})));
    return estimator.estimate({.batch = 2, .sequence = 64});
  };
  const Estimate whole = answer();
  const std::string_view call = "(%view, 1, 2)";
  const std::size_t at = bytes.find(call);
  REQUIRE(at != std::string::npos);
  bytes[at + call.size() - 2] = '9';
  const Estimate e = answer();
  CHECK(e.peak_allocated.count() == doctest::Approx(static_cast<double>(whole.peak_allocated.count())).epsilon(0.1));
  CHECK(std::any_of(e.diagnostics.begin(), e.diagnostics.end(),
                    [](const Diagnostic& d) { return d.code == "text-unusable"; }));
}

}  // namespace
}  // namespace headroom
