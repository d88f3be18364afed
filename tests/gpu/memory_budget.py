#!/usr/bin/env python3
"""PyTorch's own planner of what to recompute beside ours: the knapsack of torch.compile's partitioner
(torch._functorch.config.activation_memory_budget, operator by operator) and `headroom checkpoint`, on one card.

  memory_budget.py run HEADROOM RUNNER RESULT.jsonl [--seconds N] [--only NAME]     (needs torch with CUDA)
  memory_budget.py run … --beside OLD.jsonl    ours again, beside what PyTorch did on the same card then
  memory_budget.py table RESULT.jsonl       as Markdown

A zoo module runs in eager PyTorch, then compiled with backend "aot_eager": the partitioner's plan, eager kernels. For
each of its budgets `headroom checkpoint --by cuts` is asked for the lowest peak that recomputes no more of the time of
forward and backward than PyTorch's plan did, and its plan runs in the runner. Time: the fastest of the steps after the
second, forward and backward. PyTorch's planner is compiled and used in a process of its own.
"""
import importlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from checkpoints import answer, seconds_of
from zoo import ZOO, commands_of, rows_of

MODELS = ["gpt2", "bert_small", "vit_16", "resnet50", "mobilenet_v2", "convnext_tiny"]
BUDGETS = [1.0, 0.7, 0.4, 0.1]  # of what the forward pass saves; 1: what the partitioner does unasked


def batch_of(model, torch, device):
    """The inputs that the zoo's flags ask for, made of the export's."""
    flags = dict(zip(model["flags"][::2], model["flags"][1::2]))
    module, inputs = getattr(importlib.import_module(model["source"].split(":")[0]), model["source"].split(":")[1])()
    sized = {}
    for name, value in inputs.items():
        shape = [int(flags["--batch"]), *value.shape[1:]]
        if "--seq" in flags:
            shape[1] = int(flags["--seq"])
        sized[name] = torch.rand(shape) if value.is_floating_point() else torch.randint(0, 100, shape)
    return module.to(device).train(), {k: v.to(device) for k, v in sized.items()}


def loss_of(out, model, inputs, torch):
    if "causal-lm" in model["flags"]:
        logits, labels = out.float(), inputs["input_ids"]
        labels = torch.nn.functional.pad(labels, (0, 1), value=-100)[..., 1:].contiguous()
        return torch.nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))
    target = torch.zeros(out.shape[0], *out.shape[2:], dtype=torch.long, device=out.device)
    return torch.nn.functional.cross_entropy(out, target)


def one(name, budget):
    """In a process of its own: peak of allocated bytes and seconds of a step."""
    import torch

    sys.path.insert(0, str(ZOO))
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = entry_of(name)
    module, inputs = batch_of(model, torch, device)
    run = module
    if budget != "eager":
        import torch._functorch.config

        torch._functorch.config.activation_memory_budget = float(budget)
        run = torch.compile(module, backend="aot_eager", dynamic=False)
    made = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}.get(model["flags"][model["flags"].index("--optimizer") + 1])
    optimizer = made(module.parameters()) if made else torch.optim.SGD(module.parameters(), lr=1e-3, momentum=0.9)
    seconds = []
    for step in range(7):
        if step == 2 and device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        optimizer.zero_grad()
        start = time.perf_counter()
        out = run(*inputs.values())
        loss = loss_of(out, model, inputs, torch)
        loss.backward()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
        optimizer.step()
    peak = torch.cuda.max_memory_allocated() if device == "cuda" else 0
    print(json.dumps({"allocated_bytes": peak, "seconds": min(seconds[2:])}))


def entry_of(name):
    zoo = json.load(open(ZOO / "zoo.json"))["models"]
    return next(m for m in zoo if (m["name"], m["exporter"], m["mode"]) == (name, "dynamo", "train"))


def planned(options, model, bound, folder):
    """Our plan that recomputes no more, predicted and as the runner runs it."""
    plan = folder / "plan.json"
    told = answer([options.headroom, "checkpoint", ZOO / model["file"], *model["flags"], "--max-recompute", repr(bound),
                   "--by", "cuts", "--plan", plan, "--format", "json"])
    if "chosen" not in told:
        return {"message": told.get("message", "no plan")}
    out = {"recomputed": told["chosen"]["recomputed"], "predicted_bytes": told["chosen"]["peak"]["allocated_bytes"]}
    flag = plan if told["chosen"]["segments"] else "none"
    ran = answer([options.headroom, "verify", ZOO / model["file"], *model["flags"], "--checkpoint", flag, "--steps", "7",
                  "--runner", options.runner, "--time-limit", "120", "--format", "json"])
    row = ran.get("rows", [ran])[0]
    if row.get("outcome") != "completed":
        return {**out, "message": row.get("message", str(row)[:200])}
    return {**out, "allocated_bytes": row["measured"]["allocated_bytes"], "seconds": seconds_of(row)}


def run(options):
    end = time.monotonic() + options.seconds
    then = {(r["model"], r["budget"]): r["pytorch"] for r in rows_of(options.beside) if "pytorch" in r} if options.beside else {}
    with open(options.result, "w") as out, tempfile.TemporaryDirectory() as folder:
        for name in options.only or MODELS:
            model, base, none = entry_of(name), None, None
            for budget in ["eager", *BUDGETS]:
                row = {"model": name, "budget": budget}
                if time.monotonic() > end:
                    row["message"] = "not run: out of time"
                else:
                    row["pytorch"] = then.get((name, budget)) or answer([sys.executable, __file__, "one", name, str(budget)])
                    base = row["pytorch"].get("seconds") if budget == "eager" else base
                    if budget == "eager":
                        row["headroom"] = none = planned(options, model, 0.0, pathlib.Path(folder))
                    elif base and "seconds" in row["pytorch"]:
                        more = max(row["pytorch"]["seconds"] / base - 1, 0.0)
                        row["headroom"] = planned(options, model, more, pathlib.Path(folder))
                out.write(json.dumps(row) + "\n")
                out.flush()
                print(json.dumps(row)[:300], flush=True)


def table(options):
    print("| model | budget | PyTorch's plan, MiB | time | `headroom checkpoint`, MiB | time | predicted, MiB |")
    print("|---|---|---:|---:|---:|---:|---:|")
    base = {}
    for r in rows_of(options.result):
        cells = []
        for side in ("pytorch", "headroom"):
            ran = r.get(side, {})
            if r["budget"] == "eager":
                base[side] = ran.get("seconds")
            cells += ([f"{ran['allocated_bytes'] / 2**20:.0f}", f"{ran['seconds'] / base[side] - 1:+.1%}"] if "seconds" in ran
                      else [str(ran.get("message", r.get("message", "")))[:80], ""])
        predicted = r.get("headroom", {}).get("predicted_bytes")
        print(f"| {r['model']} | {r['budget']} | {' | '.join(cells)} | {'' if predicted is None else f'{predicted / 2**20:.0f}'} |")


def main():
    if sys.argv[1:2] == ["one"]:
        return one(*sys.argv[2:4])
    parser, _, running = commands_of(__doc__, 400)
    running.add_argument("--beside", help="an earlier RESULT.jsonl")
    options = parser.parse_args()
    {"run": run, "table": table}[options.command](options)


if __name__ == "__main__":
    main()
