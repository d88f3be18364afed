#include "estimator/plan/ladder.h"

#include <algorithm>
#include <utility>

#include "estimator/base/text.h"
#include "estimator/plan/resize.h"
#include "estimator/step/checkpoint.h"
#include "estimator/step/session.h"

namespace headroom {
namespace {

/// Unused bytes of the reserved peak from which allocator options are worth a try.
constexpr std::int64_t much_fragmentation = 256 * MiB;
constexpr double large_fragmentation = 0.05;
/// Parts that a batch is divided into at most.
constexpr std::int64_t most_parts = 64;

std::string number(std::int64_t n) { return std::to_string(n); }

/// torch.optim's class name.
std::string class_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::sgd:
    case OptimizerKind::sgd_momentum:
      return "torch.optim.SGD";
    case OptimizerKind::adam:
      return "torch.optim.Adam";
    case OptimizerKind::adamw:
      return "torch.optim.AdamW";
    case OptimizerKind::adagrad:
      return "torch.optim.Adagrad";
    case OptimizerKind::rmsprop:
      return "torch.optim.RMSprop";
    case OptimizerKind::adadelta:
      return "torch.optim.Adadelta";
    case OptimizerKind::adafactor:
      return "torch.optim.Adafactor";
    case OptimizerKind::muon:
      return "torch.optim.Muon";
    case OptimizerKind::lion:
      return "Lion";
    case OptimizerKind::adamw8bit:
      return "bnb.optim.AdamW8bit";
    case OptimizerKind::none:
      break;
  }
  return "";
}

bool is_adam(OptimizerKind k) { return k == OptimizerKind::adam || k == OptimizerKind::adamw; }
/// torch/optim: the classes with a fused implementation on CUDA.
bool has_fused(OptimizerKind k) {
  return is_adam(k) || k == OptimizerKind::sgd || k == OptimizerKind::sgd_momentum || k == OptimizerKind::adagrad;
}
bool has_foreach(OptimizerKind k) {
  return k != OptimizerKind::none && k != OptimizerKind::lion && k != OptimizerKind::muon &&
         k != OptimizerKind::adamw8bit;
}

/// model.blocks.0, as Python writes it: a number is an index.
std::string python_path(std::string_view module) {
  std::string out = "model";
  for (const std::string_view part : split(module, '.'))
    out += parse_int(part) ? "[" + std::string(part) + "]" : "." + std::string(part);
  return out;
}

/// Python expressions that run over the modules: slices of the lists they stand in, "model.h[0:12]", or tuples.
std::vector<std::string> lists_of(const std::vector<std::string>& modules) {
  std::vector<std::string> out;
  std::string loose;
  for (std::size_t i = 0; i < modules.size();) {
    const auto place = [](const std::string& m) {
      const auto dot = m.rfind('.');
      return std::pair(m.substr(0, dot == std::string::npos ? 0 : dot),
                       dot == std::string::npos ? std::nullopt : parse_int(std::string_view(m).substr(dot + 1)));
    };
    const auto [list, first] = place(modules[i]);
    std::size_t end = i + 1;
    while (first && end < modules.size() &&
           place(modules[end]) == std::pair(list, std::optional(*first + static_cast<std::int64_t>(end - i))))
      ++end;
    if (first)
      out.push_back(python_path(list) + "[" + number(*first) + ":" +
                    number(*first + static_cast<std::int64_t>(end - i)) + "]");
    else
      loose += python_path(modules[i]) + ", ";
    i = end;
  }
  if (!loose.empty()) out.push_back("(" + loose + ")");
  return out;
}

class Ladder {
 public:
  explicit Ladder(const Question& q)
      : s_(q.scenario), e_(q.estimate), graph_(q.stages.graphs[0]), program_(*q.stages.programs[0]) {}

  std::vector<Rung> rungs() {
    loop();
    allocator();
    optimizer_implementation();
    mixed_precision();
    attention();
    micro_batches();
    checkpointing();
    smaller_optimizers();
    cast_module();
    freezing();
    sequence();
    return std::move(out_);
  }

 private:
  void add(Rung r) { out_.push_back(std::move(r)); }

  /// What the training loop holds without need.
  void loop() {
    if (s_.leak == Leak::loss)
      add({.key = "loss-item",
           .group = "leak",
           .title = "Keep the loss as a number, not with its graph",
           .cost = {"none", "none", "one line", 1},
           .code = {"losses.append(loss.item())"},
           .reason = {},
           .apply = [](Scenario s) {
             s.leak = Leak::none;
             return s;
           }});
    if (s_.keeps_outputs())
      add({.key = "drop-outputs",
           .group = "outputs",
           .title = s_.training() ? "Let the outputs go once the loss is made"
                                  : "Let the last outputs go before the next forward",
           .cost = {"none", "none", "one line", 1},
           .code =
               s_.training()
                   ? std::vector<std::string>{"loss = criterion(model(x), y)  # or `del out` before loss.backward()"}
                   : std::vector<std::string>{"del out  # before the next model(x)"},
           .reason = {},
           .apply = [](Scenario s) {
             s.outputs = OutputsKept::drop;
             return s;
           }});
    if (!s_.training()) return;
    if (s_.keep_grads)
      add({.key = "set-to-none",
           .group = "keep-grads",
           .title = "Free the gradients in zero_grad",
           .cost = {"none", "none", "one line", 1},
           .code = {"optimizer.zero_grad(set_to_none=True)  # the default"},
           .reason = {},
           .apply = [](Scenario s) {
             s.keep_grads = false;
             return s;
           }});
    if (s_.zero_grad != ZeroGrad::after_step)
      add({.key = "zero-grad-after-step",
           .group = "zero-grad",
           .title = "Zero the gradients right after the step",
           .cost = {"none", "none", "one line", 1},
           .code = {"optimizer.step()", "optimizer.zero_grad()"},
           .reason = {},
           .apply = [](Scenario s) {
             s.zero_grad = ZeroGrad::after_step;
             return s;
           }});
  }

  void allocator() {
    const Bytes unused = e_.fragmentation;
    const double share =
        static_cast<double>(unused.count()) / static_cast<double>(std::max<std::int64_t>(e_.peak_reserved.count(), 1));
    if (unused.count() < much_fragmentation && share < large_fragmentation) return;
    const std::string reason = "the peak leaves " + human(unused) + " of the reserved memory unused (" +
                               number(static_cast<std::int64_t>(share * 100 + 0.5)) + " %)";
    const TorchVersion torch = parse_torch_version(s_.torch_version);
    // PYTORCH_CUDA_ALLOC_CONF is the name before 2.9 (c10/core/AllocatorConfig.cpp).
    const std::string variable = torch.major > 2 || torch.minor >= 9 ? "PYTORCH_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF";
    if (!s_.alloc_conf.empty())
      add({.key = "default-allocator",
           .group = "allocator",
           .title = "The allocator without options",
           .cost = {"none", "none", "an environment variable", 2},
           .code = {"unset " + variable},
           .reason = reason,
           .apply = [](Scenario s) {
             s.alloc_conf.clear();
             return s;
           }});
    if (s_.alloc_conf.find("expandable_segments") != std::string::npos ||
        s_.alloc_conf.find("cudaMallocAsync") != std::string::npos)
      return;
    const std::string conf = (s_.alloc_conf.empty() ? "" : s_.alloc_conf + ",") + "expandable_segments:True";
    add({.key = "expandable-segments",
         .group = "allocator",
         .title = "Segments that grow instead of new ones",
         .cost = {"a little at first", "none", "an environment variable", 2},
         .code = {variable + "=" + conf + " python train.py"},
         .reason = reason,
         .level = 2,
         .apply = [conf](Scenario s) {
           s.alloc_conf = conf;
           return s;
         }});
  }

  void optimizer_implementation() {
    if (!s_.training() || !has_foreach(s_.optimizer)) return;
    const std::string name = class_of(s_.optimizer);
    if (has_fused(s_.optimizer) && s_.optimizer_impl != OptimizerImpl::fused)
      add({.key = "fused",
           .group = "optimizer-impl",
           .title = "The fused optimizer",
           .cost = {"faster", "none", "one argument", 2},
           .code = {"optimizer = " + name + "(model.parameters(), ..., fused=True)"},
           .reason = {},
           .apply = [](Scenario s) {
             s.optimizer_impl = OptimizerImpl::fused;
             return s;
           }});
    if (s_.optimizer_impl == OptimizerImpl::foreach)
      add({.key = "for-loop",
           .group = "optimizer-impl",
           .title = "The optimizer one parameter at a time",
           .cost = {"a slower step", "none", "one argument", 3},
           .code = {"optimizer = " + name + "(model.parameters(), ..., foreach=False)"},
           .reason = {},
           .apply = [](Scenario s) {
             s.optimizer_impl = OptimizerImpl::for_loop;
             return s;
           }});
  }

  void mixed_precision() {
    if (!s_.training() || (s_.precision != Precision::fp32 && s_.precision != Precision::tf32)) return;
    // bfloat16 in hardware from compute capability 8.0 on.
    const bool bf16 = s_.device.compute_major >= 8;
    std::vector<std::string> code{
        "with torch.autocast(\"cuda\", dtype=torch." + std::string(bf16 ? "bfloat16" : "float16") + "):",
        "    loss = criterion(model(x), y)"};
    if (bf16)
      code.emplace_back("loss.backward()");
    else
      code.insert(code.end(), {"scaler.scale(loss).backward()  # scaler = torch.amp.GradScaler()",
                               "scaler.step(optimizer)", "scaler.update()"});
    add({.key = "amp",
         .group = "precision",
         .title =
             bf16 ? "Mixed precision: autocast to bfloat16" : "Mixed precision: autocast to float16 with a GradScaler",
         .cost = {"faster", "small", "a few lines", 4},
         .code = std::move(code),
         .reason = {},
         .apply = [bf16](Scenario s) {
           s.precision = bf16 ? Precision::amp_bf16 : Precision::amp_fp16;
           return s;
         }});
  }

  void attention() {
    if (s_.attention != AttentionBackend::math) return;
    add({.key = "attention",
         .group = "attention",
         .title = "Let PyTorch choose the attention kernel",
         .cost = {"faster", "none", "one line", 1},
         .code = {"# without torch.nn.attention.sdpa_kernel(SDPBackend.MATH)"},
         .reason = {},
         .apply = [](Scenario s) {
           s.attention = AttentionBackend::automatic;
           return s;
         }});
  }

  void micro_batches() {
    const auto batch = size_of(*graph_, DimMeaning::batch);
    if (!batch) return;
    // Batch norm normalises by the micro-batch.
    const bool batch_norm = std::any_of(program_.op_names.begin(), program_.op_names.end(),
                                        [](const auto& op) { return op.find("batch_norm") != std::string::npos; });
    int level = 0;
    for (std::int64_t parts = 2; parts <= std::min(*batch, most_parts); ++parts) {
      if (*batch % parts != 0) continue;
      const std::int64_t micro = *batch / parts;
      Rung r{.key = "micro-batch-" + number(micro),
             .group = "batch",
             .title = {},
             .cost = {},
             .code = {},
             .reason = {},
             .level = ++level,
             .apply = {}};
      if (s_.training()) {
        const std::int64_t steps = s_.accumulate * parts;
        r.title = "Micro-batches of " + number(micro) + ", " + number(steps) + " accumulated: the same effective batch";
        r.cost = {"a little: smaller kernels", batch_norm ? "batch norm sees smaller batches" : "none", "a few lines",
                  4 + 2 * level + (batch_norm ? 3 : 0)};
        r.code = {"loader = DataLoader(dataset, batch_size=" + number(micro) + ")  # was " + number(*batch),
                  "for i, (x, y) in enumerate(loader):",
                  "    (criterion(model(x), y) / " + number(steps) + ").backward()",
                  "    if (i + 1) % " + number(steps) + " == 0:",
                  "        optimizer.step()",
                  "        optimizer.zero_grad()"};
        r.apply = [graph = graph_, micro, steps](Scenario s) {
          s.accumulate = steps;
          return resized(std::move(s), *graph, DimMeaning::batch, micro);
        };
      } else {
        r.title = "Batches of " + number(micro);
        r.cost = {"a little: smaller kernels", "none", "one number", 4 + level};
        r.code = {"loader = DataLoader(dataset, batch_size=" + number(micro) + ")  # was " + number(*batch)};
        r.apply = [graph = graph_, micro](Scenario s) {
          return resized(std::move(s), *graph, DimMeaning::batch, micro);
        };
      }
      add(std::move(r));
    }
  }

  void checkpointing() {
    if (!s_.training() || s_.checkpoint != CheckpointKind::none) return;
    const std::vector<std::string> blocks = block_modules(program_);
    if (blocks.empty()) return;
    std::vector<std::string> code{"from functools import partial", "from torch.utils.checkpoint import checkpoint"};
    for (const std::string& list : lists_of(blocks))
      code.insert(code.end(), {"for block in " + list + ":",
                               "    block.forward = partial(checkpoint, block.forward, use_reentrant=False)"});
    add({.key = "checkpoint",
         .group = "checkpoint",
         .title = "Activation checkpointing of the " + number(static_cast<std::int64_t>(blocks.size())) + " blocks",
         .cost = {"a second forward of the blocks: about a third", "none", "a few lines", 8},
         .code = std::move(code),
         .reason = {},
         .apply = [](Scenario s) {
           s.checkpoint = CheckpointKind::blocks;
           return s;
         }});
  }

  void smaller_optimizers() {
    if (!s_.training() || !is_adam(s_.optimizer)) return;
    add({.key = "adamw8bit",
         .group = "optimizer",
         .title = "Adam's state in 8 bits (bitsandbytes)",
         .cost = {"none", "small", "a dependency", 9},
         .code = {"import bitsandbytes as bnb", "optimizer = bnb.optim.AdamW8bit(model.parameters(), ...)"},
         .reason = {},
         .apply = [](Scenario s) {
           s.optimizer = OptimizerKind::adamw8bit;
           return s;
         }});
    add({.key = "adafactor",
         .group = "optimizer",
         .title = "Adafactor: state for rows and columns only",
         .cost = {"none", "moderate: tune it again", "one line", 12},
         .code = {"optimizer = torch.optim.Adafactor(model.parameters(), ...)"},
         .reason = {},
         .level = 2,
         .apply = [](Scenario s) {
           s.optimizer = OptimizerKind::adafactor;
           return s;
         }});
  }

  void cast_module() {
    if (s_.module_dtype() != DType::undefined) return;
    const bool bf16 = s_.device.compute_major >= 8;
    // Training in float16 without float32 weights diverges.
    if (s_.training() && !bf16) return;
    const std::string dtype = bf16 ? "bfloat16" : "float16";
    add({.key = dtype,
         .group = "precision",
         .title = "The whole module in " + dtype,
         .cost = {"faster", s_.training() ? "noticeable: no float32 weights" : "small", "a few lines",
                  s_.training() ? 14 : 5},
         .code = {"model.to(torch." + dtype + ")  # before the move to the GPU; floating-point inputs too"},
         .reason = {},
         .level = 2,
         .apply = [bf16](Scenario s) {
           s.precision = bf16 ? Precision::bf16 : Precision::fp16;
           return s;
         }});
  }

  /// Everything before the second half of the blocks, as fine-tuning does.
  void freezing() {
    if (!s_.training() || !s_.freeze.empty()) return;
    const std::vector<std::string> blocks = block_modules(program_);
    const auto block_of = [&](const std::string& parameter) -> const std::string* {
      for (const auto& b : blocks)
        if (parameter.starts_with(b + ".")) return &b;
      return nullptr;
    };
    std::vector<std::string> globs;
    std::size_t met = 0;
    const std::string* last = nullptr;
    for (const Parameter& p : program_.parameters) {
      if (p.buffer) continue;
      const std::string* block = block_of(p.name);
      if (block && block != last && ++met > blocks.size() / 2) break;
      if (!block)
        globs.push_back(p.name);
      else if (block != last)
        globs.push_back(*block + ".*");
      last = block ? block : last;
    }
    if (met < 2) return;
    std::string names;
    for (const auto& g : globs)
      names += (names.empty() ? "\"" : ", \"") + (g.ends_with(".*") ? g.substr(0, g.size() - 1) : g) + "\"";
    add({.key = "freeze",
         .group = "freeze",
         .title = "Freeze the first half of the blocks and what stands before them",
         .cost = {"faster", "large: it trains half of the model", "a few lines", 18},
         .code = {"for name, p in model.named_parameters():", "    if name.startswith((" + names + ")):",
                  "        p.requires_grad_(False)"},
         .reason = {},
         .apply = [globs](Scenario s) {
           s.freeze = globs;
           return s;
         }});
  }

  void sequence() {
    const auto length = size_of(*graph_, DimMeaning::sequence);
    if (!length || *length < 2 || !s_.sequences.empty()) return;
    add({.key = "sequence-" + number(*length / 2),
         .group = "sequence",
         .title = "Sequences of " + number(*length / 2),
         .cost = {"less", "large: half of the context", "one number", 16},
         .code = {"max_length = " + number(*length / 2) + "  # was " + number(*length)},
         .reason = {},
         .apply = [graph = graph_, half = *length / 2](Scenario s) {
           return resized(std::move(s), *graph, DimMeaning::sequence, half);
         }});
  }

  const Scenario& s_;
  const Estimate& e_;
  std::shared_ptr<const ShapedGraph> graph_;
  const Program& program_;
  std::vector<Rung> out_;
};

}  // namespace

std::vector<Rung> ladder(const Question& q) { return Ladder(q).rungs(); }

std::vector<Unmodelled> unmodelled_changes(const Question& q) {
  if (!q.scenario.training() || q.scenario.parallel != Parallel::none) return {};
  const Estimate& e = q.estimate;
  return {{"zero1", "ZeRO-1 (ZeroRedundancyOptimizer)", "divides the optimizer state among the GPUs",
           e.optimizer_state_bytes},
          {"fsdp2", "FSDP2 (fully_shard)", "divides weights, gradients and optimizer state among the GPUs",
           e.model.weight_bytes + e.gradient_bytes + e.optimizer_state_bytes},
          {"offload-optimizer", "Optimizer state on the CPU", "moves it there, at the price of every step's transfers",
           e.optimizer_state_bytes},
          {"offload-activations", "Activations on the CPU (torch.autograd.graph.save_on_cpu)",
           "moves what is saved for backward there", e.category(Category::activations)}};
}

}  // namespace headroom
