// Whether `fit` answers what every batch by `estimate` does.
//
//   brute_force ZOO          a sample: three models, two cards, three precisions
//   brute_force ZOO --all    every model of the zoo, five cards, three precisions (half an hour)
//   brute_force ZOO FILE     that model of the zoo, five cards, three precisions
//
// Brute force: the largest batch that fits, of all from 1 to a quarter above the answer and 32 more; where the answer
// is above 600, of the 300 below it and the 600 above.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "estimator/cli/options.h"
#include "estimator/plan/cards.h"
#include "estimator/plan/fit.h"
#include "estimator/plan/parallel.h"

namespace headroom {
namespace {

struct ZooModel {
  std::string file;
  Scenario scenario;
};

/// The zoo with its flags for one training step, but for the batch.
std::vector<ZooModel> models_of(const std::string& zoo, const std::string& chosen) {
  std::vector<ZooModel> out;
  const auto listed = nlohmann::json::parse(std::ifstream(zoo + "/zoo.json"));
  for (const auto& m : listed.at("models")) {
    const std::string file = m.at("file");
    if (chosen.empty() ? file != "mobilenet_v2.onnx" && file != "gpt2.onnx" && file != "unet.onnx"
                       : chosen != "--all" && chosen != file)
      continue;
    std::vector<std::string> words{"estimate", zoo + "/" + file};
    for (const auto& f : m.at("flags")) words.push_back(f);
    Scenario s = cli::parse(words).scenario;
    s.batch.reset();
    out.push_back({zoo + "/" + file, s});
  }
  return out;
}

bool fits(Estimator& estimator, Scenario s, const Device& device, std::int64_t batch) {
  s.device = device;
  s.batch = batch;
  return *estimator.estimate(s).fits;
}

/// How many answers differ.
int compare(const ZooModel& model, const std::vector<Device>& devices) {
  std::atomic<int> different{0};
  Estimator estimator{std::filesystem::path(model.file)};
  FitQuestion question{.scenario = model.scenario, .devices = devices, .max = "batch", .global_batch = {}};
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::amp_fp16}) {
    question.scenario.precision = precision;
    for (const CardFit& answer : fit(estimator, question)) {
      const std::int64_t most = answer.max + std::min<std::int64_t>(answer.max / 4 + 32, 600);
      const std::int64_t from = answer.max > 600 ? answer.max - 300 : 1;
      std::atomic<std::int64_t> largest{0};
      parallel_for(static_cast<std::size_t>(most - from + 1), 0, [&](std::size_t i) {
        const std::int64_t n = from + static_cast<std::int64_t>(i);
        if (!fits(estimator, question.scenario, answer.device, n)) return;
        for (std::int64_t known = largest; known < n && !largest.compare_exchange_weak(known, n);) {
        }
      });
      const bool same = !answer.error && largest == answer.max;
      if (!same) ++different;
      std::printf("%-28s %-32s precision %d: fit %lld, brute force %lld%s\n",
                  model.file.substr(model.file.rfind('/') + 1).c_str(), answer.device.name.c_str(),
                  static_cast<int>(precision), static_cast<long long>(answer.max), static_cast<long long>(largest),
                  same ? "" : "   DIFFERENT");
      std::fflush(stdout);
    }
  }
  return different;
}

}  // namespace
}  // namespace headroom

int main(int argc, char** argv) {
  using namespace headroom;
  const std::string chosen = argc > 2 ? argv[2] : "";
  std::vector<Device> devices;
  for (const auto* name : {"rtx2060", "rtx3070", "t4", "rtx4090", "h100"})
    if (!chosen.empty() || devices.size() < 2) devices.push_back(card_named(name).device);
  int different = 0;
  for (const ZooModel& m : models_of(argv[1], chosen)) different += compare(m, devices);
  std::printf("%d differ\n", different);
  return different == 0 ? 0 : 1;
}
