#include <algorithm>
#include <filesystem>
#include <utility>

#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/cli/commands/commands.h"
#include "estimator/plan/cards.h"
#include "estimator/plan/estimate.h"
#include "estimator/plan/profile.h"

namespace headroom::cli {

const std::string& one_file(const Options& o, std::string_view what, std::string_view example) {
  if (o.files.empty())
    throw usage_error("headroom " + o.command + " wants a " + std::string(what), "",
                      "for example: headroom " + o.command + " " + std::string(example));
  if (o.files.size() > 1)
    throw usage_error("headroom " + o.command + " takes one " + std::string(what) + ", but got '" +
                      printable(o.files[0]) + "' and '" + printable(o.files[1]) + "'");
  std::error_code none;
  for (const auto& [flag, written] : {std::pair("-o", o.output), std::pair("--snapshot", o.snapshot)})
    if (!written.empty() && std::filesystem::equivalent(written, o.files[0], none))
      throw usage_error(std::string(flag) + " would write over the " + std::string(what) + " itself", written,
                        "name another file");
  return o.files[0];
}

const std::string& model_file(const Options& o) { return one_file(o, "model file", "model.onnx --batch 8"); }

namespace {

std::optional<Bytes> size_of(const char* flag, const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto bytes = parse_size(text);
  if (!bytes || bytes->count() == 0)
    throw usage_error(std::string(flag) + " wants a size with its unit, not '" + printable(text) + "'", "",
                      std::string("for example ") + flag + " 24GiB");
  return bytes;
}

}  // namespace

std::optional<Bytes> memory_of(const Options& o) { return size_of("--memory", o.memory); }
std::optional<Bytes> budget_of(const Options& o) { return size_of("--budget", o.budget); }

Scenario scenario_of(const Options& o) {
  Scenario s = o.scenario;
  if (s.sequence && !s.sequences.empty())
    throw usage_error("--seq and --seqs exclude each other", "",
                      "--seq: one length for all steps; --seqs: one for each");
  if (s.leak == Leak::loss && !s.training())
    throw usage_error("--leak loss needs a training step", "", "inference has no loss to keep");
  if (!o.gpu.empty()) s.device = card_named(o.gpu).device;
  if (const auto profile = profile_of(s)) {
    const Device& card = profile->card;
    if (!o.gpu.empty() && (s.device.sm_count != card.sm_count || s.device.compute_major != card.compute_major))
      throw usage_error("the profile is of " + printable(card.name) + ", not of " + card_named(o.gpu).name, s.profile,
                        "leave --gpu out: the profile names its card");
    s.device = card;
  }
  if (const auto bytes = memory_of(o)) s.device.total_bytes = *bytes;
  if (s.skipped_steps > 0 && (!s.training() || s.precision != Precision::amp_fp16))
    throw usage_error("--skipped-steps: only GradScaler skips steps", "", "--precision amp-fp16, in training");
  if (s.skipped_steps >= s.steps && s.steps > 0)
    throw usage_error("--skipped-steps: of " + std::to_string(s.steps) + " steps, all", "", "--steps above it");
  return s;
}

Diagnostics not_modelled_yet(const Scenario& s) {
  Diagnostics out;
  const auto say = [&out](const char* option, std::string what) {
    out.push_back({.code = "option-not-modelled",
                   .severity = Severity::warning,
                   .node = option,
                   .message = std::string(option) + " is not modelled yet: " + std::move(what)});
  };
  if (s.precision == Precision::tf32) say("--precision tf32", "the figures are those of fp32");
  if (s.parallel != Parallel::none) say("--parallel", "the figure is of one GPU that holds the whole model");
  if (s.world_size > 1 && s.parallel == Parallel::none) say("--world-size", "it needs --parallel");
  return out;
}

void note_not_modelled_yet(const Scenario& s, Diagnostics& all) {
  for (Diagnostic& d : not_modelled_yet(s))
    if (std::none_of(all.begin(), all.end(), [&](const Diagnostic& known) { return known.message == d.message; }))
      all.push_back(std::move(d));
}

void demand_modelled(const Estimate& e) {
  for (const Diagnostic& d : e.diagnostics)
    if (d.code == "option-not-modelled")
      throw Error(Exit::not_modelled, "--strict: " + d.message, d.node, "the figures are those without it");
  for (const Diagnostic& d : e.diagnostics)
    if (d.bound.count() > 0)
      throw Error(Exit::not_modelled, "--strict: " + d.message, d.node, "the result stands, with this in its margin");
}

}  // namespace headroom::cli
