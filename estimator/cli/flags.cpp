#include <array>
#include <charconv>
#include <utility>

#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/cli/options.h"
#include "estimator/cli/plan_file.h"
#include "estimator/program/scenario_names.h"

namespace headroom::cli {
namespace {

std::int64_t positive(std::string_view flag, std::string_view value) {
  const auto n = parse_int(value);
  if (!n || *n <= 0)
    throw usage_error("--" + std::string(flag) + " wants a whole number above 0, not '" + printable(value) + "'");
  return *n;
}

/// Seconds of "120s", "2min" or "120".
std::int64_t duration(std::string_view flag, std::string_view value) {
  const bool minutes = value.ends_with("min");
  const std::string_view number = value.substr(0, value.size() - (minutes ? 3 : value.ends_with('s') ? 1 : 0));
  const auto n = parse_int(number);
  if (!n || *n <= 0 || *n > 86'400)
    throw usage_error("--" + std::string(flag) + " wants a time such as 120s or 5min, not '" + printable(value) + "'");
  return minutes ? *n * 60 : *n;
}

template <class T, std::size_t N>
T choice(std::string_view flag, std::string_view value, const std::array<Named<T>, N>& choices) {
  std::vector<std::string_view> names;
  for (const auto& [name, v] : choices) {
    if (name == value) return v;
    names.push_back(name);
  }
  std::string all;
  for (const auto n : names) all += (all.empty() ? "" : " | ") + std::string(n);
  const auto near = nearest(value, names);
  throw usage_error("--" + std::string(flag) + " does not know '" + printable(value) + "'", "",
                    near.empty() ? "one of: " + all : "did you mean '" + std::string(near) + "'? One of: " + all);
}

std::pair<std::string, std::string_view> assignment(std::string_view flag, std::string_view value,
                                                    std::string_view example) {
  const auto at = value.find('=');
  if (at == std::string_view::npos || at == 0 || at + 1 == value.size())
    throw usage_error("--" + std::string(flag) + " wants NAME=VALUE, not '" + printable(value) + "'", "",
                      "for example: --" + std::string(flag) + " " + std::string(example));
  return {std::string(value.substr(0, at)), value.substr(at + 1)};
}

std::vector<std::int64_t> sizes(std::string_view flag, std::string_view text, char separator) {
  std::vector<std::int64_t> out;
  for (const auto part : split(text, separator)) {
    const auto n = parse_int(part);
    if (!n || *n < 0)
      throw usage_error("--" + std::string(flag) + ": '" + printable(part) + "' is no size", "",
                        "sizes are whole numbers, for example 2x3x224x224");
    out.push_back(*n);
  }
  return out;
}

constexpr auto formats =
    std::to_array<Named<std::string_view>>({{"table", "table"}, {"json", "json"}, {"csv", "csv"}, {"md", "md"}});
constexpr auto review_formats =
    std::to_array<std::pair<std::string_view, std::string_view>>({{"html", "html"}, {"md", "md"}, {"latex", "latex"}});
constexpr auto placement_formats = std::to_array<Named<std::string_view>>({{"table", "table"}, {"json", "json"}});
constexpr auto placement_kinds = std::to_array<Named<bool>>({{"modules", false}, {"cuts", true}});
constexpr auto document_formats = std::to_array<Named<std::string_view>>(
    {{"table", "table"}, {"json", "json"}, {"csv", "csv"}, {"md", "md"}, {"latex", "latex"}, {"html", "html"}});
constexpr auto stages = std::to_array<Named<std::string_view>>({{"graph", "graph"},
                                                                {"shapes", "shapes"},
                                                                {"program", "program"},
                                                                {"job", "job"},
                                                                {"trace", "trace"},
                                                                {"timeline", "timeline"}});

using V = std::string_view;

constexpr auto table = std::to_array<Flag>({
    {"max", "batch|seq|DIM", "Search",
     "What is made as large as it fits; default: batch. DIM: resolution, a dimension's name, or several that stay equal: "
     "H,W. The answer N fits, and of the next N/8 sizes (at least 16; above 1,024 by samples) none does",
     on_fit,
     [](Options& o, V v) { o.max = v; }},
    {"global-batch", "N", "Search", "The batch of one optimizer step: says how often to accumulate, or on how many cards",
     on_fit, [](Options& o, V v) { o.global_batch = positive("global-batch", v); }},
    {"prices", "FILE.csv", "Search", "Yours: columns gpu and price (of one card for an hour), perhaps currency", on_fit,
     [](Options& o, V v) { o.prices = v; }},
    {"over", "AXIS=V,V,...", "Sweep",
     "An axis: the name of a flag below, or of a dimension, and its values. 4:64 doubles from 4 to 64, 8:64:8 counts by 8; "
     "a switch is on or off; repeatable",
     on_sweep | on_report, [](Options& o, V v) { o.over.emplace_back(v); }, true},
    {"metric", "NAME,NAME,...", "Sweep",
     "What tables show: allocated, reserved, device, margin, weights, gradients, optimizer-state, activations, workspaces, "
     "fragmentation. Default: of one axis the first three, of several device",
     on_sweep,
     [](Options& o, V v) {
       o.metrics.clear();
       for (const auto name : split(v, ',')) o.metrics.emplace_back(name);
     }},
    {"batch", "N", "Size of the input", "Batch size: binds every dimension that is one",
     on_question | on_calibrate, [](Options& o, V v) { o.scenario.batch = positive("batch", v); }},
    {"seq", "N", "Size of the input", "Sequence length: binds every dimension that is one",
     on_question | on_calibrate, [](Options& o, V v) { o.scenario.sequence = positive("seq", v); }},
    {"dim", "NAME=N", "Size of the input", "Binds a symbolic dimension by its name; repeatable", on_question,
     [](Options& o, V v) {
       const auto [name, n] = assignment("dim", v, "height=224");
       o.scenario.dims[name] = positive("dim", n);
     },
     true},
    {"shape", "INPUT=2x3x224x224", "Size of the input", "Binds a whole input; repeatable", on_question,
     [](Options& o, V v) {
       const auto [name, s] = assignment("shape", v, "x=2x3x224x224");
       o.scenario.shapes[name] = sizes("shape", s, 'x');
     },
     true},
    {"seqs", "N,N,...", "Size of the input", "A run whose sequence length varies by step", on_question,
     [](Options& o, V v) {
       o.scenario.sequences = sizes("seqs", v, ',');
       for (const auto n : o.scenario.sequences)
         if (n == 0) throw usage_error("--seqs: a length must be above 0");
     }},
    {"steps", "N", "Size of the input", "Steps to run; default: until the state is steady", on_question,
     [](Options& o, V v) {
       o.scenario.steps = positive("steps", v);
       if (o.scenario.steps > 10'000) throw usage_error("--steps: at most 10000");
     }},
    {"task", "train|infer", "Run", "A training step, or inference under torch.no_grad()", on_question,
     [](Options& o, V v) { o.scenario.task = choice("task", v, task_names); }},
    {"precision", "fp32|tf32|fp16|bf16|amp-fp16|amp-bf16", "Run", "fp16, bf16: the module cast; amp: autocast",
     on_question, [](Options& o, V v) { o.scenario.precision = choice("precision", v, precision_names); }},
    {"cast-on", "cpu|gpu", "Run", "Where a fp16 or bf16 module was cast: before or after the move to the GPU",
     on_question, [](Options& o, V v) { o.scenario.cast_on = choice("cast-on", v, cast_on_names); }},
    {"optimizer", "sgd|sgd-momentum|adam|adamw|adagrad|rmsprop|adadelta|adafactor|lion|muon|adamw8bit|none", "Run",
     "Default: adamw", on_question, [](Options& o, V v) { o.scenario.optimizer = choice("optimizer", v, optimizer_names); }},
    {"optimizer-impl", "foreach|fused|for-loop", "Run", "Default: foreach, as PyTorch on CUDA", on_question,
     [](Options& o, V v) { o.scenario.optimizer_impl = choice("optimizer-impl", v, optimizer_impl_names); }},
    {"loss", "cross-entropy|causal-lm|mse|sum|none", "Run", "Taken of the first output; default: cross-entropy. causal-lm: as Hugging Face shifts the labels; none: the model returns its loss",
     on_question, [](Options& o, V v) { o.scenario.loss = choice("loss", v, loss_names); }},
    {"accumulate", "N", "Run", "Micro-batches for each optimizer step", on_question,
     [](Options& o, V v) { o.scenario.accumulate = positive("accumulate", v); }},
    {"clip-grad", "", "Run", "torch.nn.utils.clip_grad_norm_ before the step", on_question,
     [](Options& o, V) { o.scenario.clip_grad = true; }},
    {"keep-grads", "", "Run", "zero_grad(set_to_none=False)", on_question,
     [](Options& o, V) { o.scenario.keep_grads = true; }},
    {"zero-grad", "after-step|before-forward|before-backward", "Run", "Where optimizer.zero_grad() stands", on_question,
     [](Options& o, V v) { o.scenario.zero_grad = choice("zero-grad", v, zero_grad_names); }},
    {"outputs", "keep|drop", "Run",
     "keep: `out` stays referenced until the next forward (default in training); drop: freed after the loss (in inference)",
     on_question, [](Options& o, V v) { o.scenario.outputs = choice("outputs", v, outputs_names); }},
    {"skipped-steps", "N", "Run", "First steps in which GradScaler finds overflows and the optimizer does not run (amp-fp16)",
     on_estimate | on_inspect | on_verify,
     [](Options& o, V v) {
       o.scenario.skipped_steps = positive("skipped-steps", v);
       if (o.scenario.skipped_steps > 100) throw usage_error("--skipped-steps: at most 100");
     }},
    {"leak", "none|loss", "Run", "loss: the loop appends every loss, with its graph, to a list", on_question,
     [](Options& o, V v) { o.scenario.leak = choice("leak", v, leak_names); }},
    {"checkpoint", "none|blocks|PLAN.json|MODULES", "Run",
     "Activation checkpointing: of every block, as a plan says, or of modules by path, with commas", on_question & ~on_checkpoint,
     [](Options& o, V v) {
       o.scenario.checkpoint = v == "none"     ? CheckpointKind::none
                               : v == "blocks" ? CheckpointKind::blocks
                                               : CheckpointKind::plan;
       if (o.scenario.checkpoint == CheckpointKind::plan)
         o.scenario.checkpoint_plan = v.ends_with(".json") ? read_plan_file(std::string(v)) : plan_of_modules(v);
     }},
    {"attention", "auto|math|efficient|flash|cudnn", "Run", "Backend of scaled_dot_product_attention", on_question,
     [](Options& o, V v) { o.scenario.attention = choice("attention", v, attention_names); }},
    {"channels-last", "", "Run", "Model and images in channels_last", on_question,
     [](Options& o, V) { o.scenario.channels_last = true; }},
    {"freeze", "GLOB", "Run", "Parameters with requires_grad=False; repeatable", on_question,
     [](Options& o, V v) { o.scenario.freeze.emplace_back(v); }, true},
    {"parallel", "none|ddp|zero1|zero2|fsdp2", "Run", "How the model is spread over GPUs (not modelled yet: the figures are of one GPU)", on_scenario,
     [](Options& o, V v) { o.scenario.parallel = choice("parallel", v, parallel_names); }},
    {"world-size", "N", "Run", "Number of GPUs (not modelled yet)", on_scenario,
     [](Options& o, V v) { o.scenario.world_size = positive("world-size", v); }},
    {"gpu", "NAME", "Card and software", "The card, by name or alias: `headroom gpus` lists them", on_scenario,
     [](Options& o, V v) {
       o.gpu = v;
       o.gpus.emplace_back(v);
     }},
    {"memory", "24GiB", "Card and software", "Memory of the card, where it is not listed or only a part is yours",
     on_question | on_replay, [](Options& o, V v) { o.memory = v; }},
    {"max-recompute", "20%", "Placement", "At most this share of forward and backward runs twice; then the lowest peak",
     on_checkpoint,
     [](Options& o, V v) {
       const bool percent = v.ends_with('%');
       const V number = percent ? v.substr(0, v.size() - 1) : v;
       double share = -1;
       const auto read = std::from_chars(number.data(), number.data() + number.size(), share);
       if (read.ec != std::errc() || read.ptr != number.data() + number.size() || !(share >= 0 && share <= 100))
         throw usage_error("--max-recompute wants a share such as 20% or 0.2, not '" + printable(v) + "'");
       o.max_recompute = percent ? share / 100 : share;
     }},
    {"by", "modules|cuts", "Placement",
     "modules (default): whole modules and runs of one list, wrapped by name; cuts: any stretch of a forward",
     on_checkpoint, [](Options& o, V v) { o.by_cuts = choice("by", v, placement_kinds); }},
    {"plan", "FILE", "Placement", "Write the chosen placement as a plan for --checkpoint", on_checkpoint,
     [](Options& o, V v) { o.plan = v; }},
    {"svg", "FILE", "Placement", "Draw the front", on_checkpoint, [](Options& o, V v) { o.svg = v; }},
    {"budget", "20GiB", "Card and software", "Exit 1 when the process takes more: the device figure", on_estimate,
     [](Options& o, V v) { o.budget = v; }},
    {"alloc-conf", "TEXT", "Card and software", "PYTORCH_ALLOC_CONF; repeatable in replay: settings side by side",
     on_question | on_replay,
     [](Options& o, V v) {
       o.scenario.alloc_conf = v;
       o.alloc_confs.emplace_back(v);
     }},
    {"torch", "VERSION", "Card and software", "PyTorch version; default: 2.11, in replay the recording's",
     on_scenario | on_replay,
     [](Options& o, V v) {
       const auto parts = split(v, '.');
       if (parts.size() < 2 || !parse_int(parts[0]) || !parse_int(parts[1]))
         throw usage_error("--torch wants a version such as 2.11, not '" + printable(v) + "'");
       o.scenario.torch_version = v;
       o.torch = v;
     }},
    {"profile", "FILE", "Card and software", "What calibration learned of a card", on_scenario,
     [](Options& o, V v) { o.scenario.profile = v; }},
    {"format", "table|json|csv|md", "Output", "Default: table", on_estimate | on_replay | on_check | on_diff | on_advise | on_verify | on_ops | on_gpus,
     [](Options& o, V v) { o.format = choice("format", v, formats); }},
    {"format", "table|json", "Output", "Default: table", on_checkpoint,
     [](Options& o, V v) { o.format = choice("format", v, placement_formats); }},
    {"format", "table|json|csv|md|latex|html", "Output", "Default: table", on_fit | on_sweep,
     [](Options& o, V v) { o.format = choice("format", v, document_formats); }},
    {"format", "html|md|latex", "Output", "Default: what -o ends in (.html, .md, .tex), else html", on_report,
     [](Options& o, V v) { o.format = choice("format", v, review_formats); }},
    {"output,o", "FILE", "Output", "Write there instead of standard output", on_all & ~on_completions,
     [](Options& o, V v) { o.output = v; }},
    {"snapshot", "FILE", "Output", "The predicted run as a PyTorch memory snapshot, for pytorch.org/memory_viz", on_estimate,
     [](Options& o, V v) { o.snapshot = v; }},
    {"strict", "", "Output", "Exit 4 when anything had to be bounded instead of modelled", on_estimate | on_check,
     [](Options& o, V) { o.strict = true; }},
    {"check", "", "Output", "Compare with what was recorded: every address, segment, peak and refusal", on_replay,
     [](Options& o, V) { o.check = true; }},
    {"tolerance", "100MiB", "Output", "Exit 1 when the allocated or reserved peak grew by more: a size, or 5%", on_diff,
     [](Options& o, V v) { o.tolerance = v; }},
    {"runner", "PATH", "Measurement", "headroom-runner; default: beside this program, else on the PATH",
     on_verify | on_calibrate,
     [](Options& o, V v) { o.runner = v; }},
    {"time-limit", "SECONDS", "Measurement", "Stop a run that takes longer; default: 600", on_verify | on_calibrate,
     [](Options& o, V v) { o.time_limit = positive("time-limit", v); }},
    {"budget", "120s", "Measurement", "How long calibration may take; default: 120s", on_calibrate,
     [](Options& o, V v) { o.seconds = duration("budget", v); }},
    {"from-nothing", "", "Measurement", "Without the convolutions that headroom knows of cards like this one", on_calibrate,
     [](Options& o, V) { o.from_nothing = true; }},
    {"events", "FILE", "Measurement", "The last step's allocs and frees, estimated and measured, as JSON", on_verify,
     [](Options& o, V v) { o.events = v; }},
    {"max-batch", "", "Measurement", "The largest batch that runs, beside the predicted one", on_verify,
     [](Options& o, V) { o.max_batch = true; }},
    {"suite", "headroom.toml", "Measurement", "Verify every scenario of a configuration", on_verify,
     [](Options& o, V v) { o.suite = v; }},
    {"stage", "graph|shapes|program|job|trace|timeline", "Output", "What to print", on_inspect,
     [](Options& o, V v) { o.stage = choice("stage", v, stages); }},
    {"against", "TRACE", "Output", "Beside a recorded step (PyTorch memory snapshot or JSON): the first differences",
     on_inspect, [](Options& o, V v) { o.against = v; }},
    {"threads,j", "N", "Output", "Cores to use; default: all", on_fit | on_sweep | on_report,
     [](Options& o, V v) {
       o.threads = static_cast<std::size_t>(positive("threads", v));
       if (o.threads > 1024) throw usage_error("--threads: at most 1024");
     }},
    {"help,h", "", "Output", "This text", on_all, [](Options& o, V) { o.help = true; }},
});

}  // namespace

std::span<const Flag> flags() { return table; }

}  // namespace headroom::cli
