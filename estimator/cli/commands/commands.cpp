#include "estimator/cli/commands/commands.h"

#include <array>

namespace headroom::cli {
namespace {

constexpr auto table = std::to_array<Command>({
    {"estimate", on_estimate, "MODEL.onnx", "peak memory of a training step or an inference",
     "  headroom estimate gpt2.onnx --batch 8 --seq 512 --precision amp-bf16 --gpu h200\n"
     "  headroom estimate resnet50.onnx --batch 64 --optimizer sgd-momentum --outputs drop\n"
     "  headroom estimate model.onnx --shape x=8x3x512x512 --task infer --format json\n",
     run_estimate},
    {"fit", on_fit, "MODEL.onnx",
     "the largest batch (or sequence, or dimension) on each card, or the cards that hold one",
     "  headroom fit gpt2.onnx --seq 1024 --precision amp-bf16 --gpu rtx4090 --gpu a100\n"
     "  headroom fit gpt2.onnx --seq 1024 --batch 8                  which cards hold a batch of 8?\n"
     "  headroom fit gpt2.onnx --max seq --batch 4 --gpu all         the longest sequence, on every card known\n"
     "  headroom fit gpt2.onnx --seq 1024 --global-batch 512 --prices prices.csv --format html -o cards.html\n",
     run_fit},
    {"sweep", on_sweep, "MODEL.onnx", "a table of peaks: any knobs against each other",
     "  headroom sweep gpt2.onnx --seq 512 --over batch=1,2,4:64\n"
     "  headroom sweep gpt2.onnx --over batch=8:64 --over seq=256:1024:256 --gpu rtx4090 --precision amp-bf16\n"
     "  headroom sweep gpt2.onnx --batch 8 --seq 512 --over optimizer=sgd,adamw --over checkpoint=none,blocks \\\n"
     "      --over precision=fp32,amp-bf16 --format latex -o table.tex\n",
     run_sweep},
    {"inspect", on_inspect, "MODEL.onnx",
     "print a stage: the graph, its shapes, the eager program, the trace, the timeline",
     "  headroom inspect gpt2.onnx --stage program --batch 1 --seq 16\n"
     "  headroom inspect gpt2.onnx --stage trace --batch 1 --seq 16 --task infer\n",
     run_inspect},
    {"replay", on_replay, "FILE", "a recorded allocator history (PyTorch memory snapshot or JSON) under other settings",
     "  headroom replay snapshot.pickle\n"
     "  headroom replay snapshot.pickle --alloc-conf expandable_segments:True --alloc-conf max_split_size_mb:128\n"
     "  headroom replay snapshot.pickle --memory 24GiB\n",
     run_replay},
    {"advise", on_advise, "MODEL.onnx", "what to change so that it fits, every step simulated",
     "  headroom advise gpt2.onnx --batch 16 --seq 1024 --gpu rtx4090\n"
     "  headroom advise gpt2.onnx --batch 16 --seq 1024 --memory 16GiB --format json\n",
     run_advise},
    {"report", on_report, "MODEL.onnx", "one document for a design review: figures, timeline, sizes, cards, advice",
     "  headroom report gpt2.onnx --batch 8 --seq 1024 --gpu rtx4090 -o gpt2.html\n"
     "  headroom report gpt2.onnx --batch 8 --seq 1024 --gpu rtx4090 -o gpt2.tex\n",
     run_report},
    {"checkpoint", on_checkpoint, "MODEL.onnx", "where to place activation checkpoints, as code to paste",
     "  headroom checkpoint gpt2.onnx --batch 16 --seq 1024 --gpu rtx4090\n"
     "  headroom checkpoint gpt2.onnx --batch 16 --seq 1024 --max-recompute 10% --plan plan.json\n"
     "  headroom estimate gpt2.onnx --batch 16 --seq 1024 --checkpoint plan.json\n"
     "\na plan file:\n"
     "  {\"schema_version\": 1, \"segments\": [\n"
     "    {\"module\": \"h.0\"},                       each call of the module is a segment\n"
     "    {\"modules\": [\"h.1\", \"h.2\"]},            consecutive modules as one segment\n"
     "    {\"calls\": [40, 66]},                     calls of `headroom inspect --stage program`\n"
     "    {\"module\": \"h.3\", \"reentrant\": true},   use_reentrant=True\n"
     "    {\"module\": \"h.4\", \"save\": [\"aten::mm\"]}]}   selective: results that are kept\n",
     run_checkpoint},
    {"check", on_check, "[headroom.toml]", "hold the scenarios of a repository to their budgets and cards",
     "  headroom check\n"
     "  headroom check ci/ --format md\n",
     run_check},
    {"diff", on_diff, "A [B] [-- OPTIONS]", "what grew between two scenarios, two models or two saved estimates",
     "  headroom diff gpt2.onnx --batch 8 --seq 512 -- --batch 16\n"
     "  headroom diff before.onnx after.onnx --batch 8 --tolerance 100MiB\n"
     "  headroom diff before.json after.json --tolerance 5% --format md\n",
     run_diff},
    {"verify", on_verify, "MODEL.onnx", "run the model on the card that is there, and hold the estimate against it",
     "  headroom verify gpt2.onnx --batch 8 --seq 512 --precision amp-bf16\n"
     "  headroom verify gpt2.onnx --seq 512 --max-batch --memory 24GiB\n"
     "  headroom verify --suite headroom.toml --format json\n",
     run_verify},
    {"calibrate", on_calibrate, "[MODEL.onnx ...]", "measure the card that is there: a profile for --profile",
     "  headroom calibrate -o mycard.json\n"
     "  headroom calibrate -o mycard.json mymodel.onnx --batch 32\n"
     "  headroom estimate mymodel.onnx --batch 48 --profile mycard.json\n",
     run_calibrate},
    {"ops", on_ops, "", "the operators that are modelled", "  headroom ops\n", run_ops},
    {"gpus", on_gpus, "", "the cards that are known", "  headroom gpus\n  headroom gpus --format json\n", run_gpus},
    {"completions", on_completions, "bash|zsh|fish", "completions for a shell",
     "  headroom completions bash > ~/.local/share/bash-completion/completions/headroom\n", run_completions},
    {"man", on_man, "", "the manual page", "  headroom man | man -l -\n", run_man},
});

}  // namespace

std::span<const Command> commands() { return table; }

}  // namespace headroom::cli
