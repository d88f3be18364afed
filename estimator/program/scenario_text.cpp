#include "estimator/program/scenario_text.h"

#include "estimator/program/scenario_names.h"

namespace headroom {
namespace {

std::string joined(const std::vector<std::int64_t>& v, char separator) {
  std::string out;
  for (const auto n : v) out += (out.empty() ? "" : std::string(1, separator)) + std::to_string(n);
  return out;
}

}  // namespace

std::vector<ScenarioText> scenario_text(const Scenario& s) {
  std::vector<ScenarioText> out;
  const auto add = [&](const char* name, std::string value) { out.push_back({name, std::move(value)}); };
  const auto pick = [](auto value, const auto& names) { return std::string(name_in(names, value)); };
  const auto flag = [](bool on) { return std::string(on ? "true" : "false"); };
  add("task", pick(s.task, task_names));
  if (s.batch) add("batch", std::to_string(*s.batch));
  if (s.sequence) add("seq", std::to_string(*s.sequence));
  for (const auto& [name, n] : s.dims) add("dim", name + "=" + std::to_string(n));
  for (const auto& [name, dims] : s.shapes) add("shape", name + "=" + joined(dims, 'x'));
  if (!s.sequences.empty()) add("seqs", joined(s.sequences, ','));
  if (s.steps > 0) add("steps", std::to_string(s.steps));
  add("precision", pick(s.precision, precision_names));
  add("cast-on", pick(s.cast_on, cast_on_names));
  add("optimizer", pick(s.optimizer, optimizer_names));
  add("optimizer-impl", pick(s.optimizer_impl, optimizer_impl_names));
  add("loss", pick(s.loss, loss_names));
  add("accumulate", std::to_string(s.accumulate));
  add("clip-grad", flag(s.clip_grad));
  add("keep-grads", flag(s.keep_grads));
  add("zero-grad", pick(s.zero_grad, zero_grad_names));
  add("outputs", s.keeps_outputs() ? "keep" : "drop");
  if (s.skipped_steps > 0) add("skipped-steps", std::to_string(s.skipped_steps));
  if (s.leak == Leak::loss) add("leak", "loss");
  add("checkpoint", s.checkpoint == CheckpointKind::plan     ? s.checkpoint_plan.source
                    : s.checkpoint == CheckpointKind::blocks ? "blocks"
                                                             : "none");
  add("attention", pick(s.attention, attention_names));
  add("channels-last", flag(s.channels_last));
  for (const auto& glob : s.freeze) add("freeze", glob);
  add("parallel", pick(s.parallel, parallel_names));
  add("world-size", std::to_string(s.world_size));
  add("alloc-conf", s.alloc_conf);
  add("torch", s.torch_version);
  if (!s.device.name.empty()) add("gpu", s.device.name);
  if (s.device.total_bytes.count() > 0) add("memory", std::to_string(s.device.total_bytes.count()));
  if (!s.profile.empty()) add("profile", s.profile);
  return out;
}

}  // namespace headroom
