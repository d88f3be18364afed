#include "estimator/program/scenario_text.h"

#include <array>

namespace headroom {
namespace {

template <class T, std::size_t N>
std::string pick(T value, const std::array<const char*, N>& names) {
  return names[static_cast<std::size_t>(value)];
}

std::string joined(const std::vector<std::int64_t>& v, char separator) {
  std::string out;
  for (const auto n : v) out += (out.empty() ? "" : std::string(1, separator)) + std::to_string(n);
  return out;
}

}  // namespace

std::vector<ScenarioText> scenario_text(const Scenario& s) {
  std::vector<ScenarioText> out;
  const auto add = [&](const char* name, std::string value) { out.push_back({name, std::move(value)}); };
  const auto flag = [](bool on) { return std::string(on ? "true" : "false"); };
  add("task", s.task == Task::train ? "train" : "infer");
  if (s.batch) add("batch", std::to_string(*s.batch));
  if (s.sequence) add("seq", std::to_string(*s.sequence));
  for (const auto& [name, n] : s.dims) add("dim", name + "=" + std::to_string(n));
  for (const auto& [name, dims] : s.shapes) add("shape", name + "=" + joined(dims, 'x'));
  if (!s.sequences.empty()) add("seqs", joined(s.sequences, ','));
  if (s.steps > 0) add("steps", std::to_string(s.steps));
  add("precision", pick(s.precision, std::to_array({"fp32", "tf32", "fp16", "bf16", "amp-fp16", "amp-bf16"})));
  add("cast-on", s.cast_on == CastOn::cpu ? "cpu" : "gpu");
  add("optimizer", pick(s.optimizer, std::to_array({"sgd", "sgd-momentum", "adam", "adamw", "adagrad", "rmsprop",
                                                    "adadelta", "adafactor", "lion", "muon", "adamw8bit", "none"})));
  add("optimizer-impl", pick(s.optimizer_impl, std::to_array({"foreach", "fused", "for-loop"})));
  add("loss", pick(s.loss, std::to_array({"cross-entropy", "causal-lm", "mse", "sum", "none"})));
  add("accumulate", std::to_string(s.accumulate));
  add("clip-grad", flag(s.clip_grad));
  add("keep-grads", flag(s.keep_grads));
  add("zero-grad", pick(s.zero_grad, std::to_array({"after-step", "before-forward", "before-backward"})));
  add("outputs", s.keeps_outputs() ? "keep" : "drop");
  if (s.leak == Leak::loss) add("leak", "loss");
  add("checkpoint", s.checkpoint == CheckpointKind::plan     ? s.checkpoint_plan
                    : s.checkpoint == CheckpointKind::blocks ? "blocks"
                                                             : "none");
  add("attention", pick(s.attention, std::to_array({"auto", "math", "efficient", "flash", "cudnn"})));
  add("channels-last", flag(s.channels_last));
  for (const auto& glob : s.freeze) add("freeze", glob);
  add("parallel", pick(s.parallel, std::to_array({"none", "ddp", "zero1", "zero2", "fsdp2"})));
  add("world-size", std::to_string(s.world_size));
  add("alloc-conf", s.alloc_conf);
  add("torch", s.torch_version);
  if (!s.device.name.empty()) add("gpu", s.device.name);
  if (s.device.total_bytes.count() > 0) add("memory", std::to_string(s.device.total_bytes.count()));
  if (!s.profile.empty()) add("profile", s.profile);
  return out;
}

}  // namespace headroom
