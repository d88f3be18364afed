#!/usr/bin/env python3
"""The largest batch that trains under a memory cap: predicted, then run on a card.

  max_batch.py predict HEADROOM PLAN.json         predicts (needs no GPU)
  max_batch.py run PLAN.json RESULT.jsonl [JOBS]  trains at the predicted batch and one above (needs torch with CUDA)
  max_batch.py table RESULT.jsonl                 the table, as Markdown

The cap is torch.cuda.set_per_process_memory_fraction. Every batch is trained for four steps in a process of its own:
forward, cross entropy, `del out`, backward, AdamW, zero_grad; float32; models and exports are those of models/zoo.
"""
import concurrent.futures
import importlib
import json
import os
import subprocess
import sys

ZOO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models", "zoo")
MODELS = ["resnet50", "mobilenet_v2", "convnext_tiny", "unet", "vit_16", "bert_small", "gpt2", "llama_small"]
FRACTIONS = [0.05, 0.12]


def zoo_model(name):
    for m in json.load(open(os.path.join(ZOO, "zoo.json")))["models"]:
        if (m["name"], m["exporter"], m["mode"]) == (name, "dynamo", "train"):
            return m
    raise SystemExit(f"the zoo has no dynamo train export of {name}")


def sequence_of(m):
    return int(m["flags"][m["flags"].index("--seq") + 1]) if "--seq" in m["flags"] else None


def fits(headroom, m, batch, fraction):
    sequence = sequence_of(m)
    cmd = [headroom, "estimate", os.path.join(ZOO, m["file"]), "--batch", str(batch), "--outputs", "drop", "--gpu",
           "h200", "--alloc-conf", f"per_process_memory_fraction:{fraction}", "--steps", "4", "--format", "json"]
    cmd += ["--seq", str(sequence)] if sequence else []
    answer = json.loads(subprocess.run(cmd, capture_output=True, text=True, check=False).stdout)
    return not answer.get("out_of_memory"), answer["peak"]


def predict(headroom, path):
    plan = []
    for name in MODELS:
        m = zoo_model(name)
        for fraction in FRACTIONS:
            low, high = 0, 1
            while fits(headroom, m, high, fraction)[0]:
                low, high = high, high * 2
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if fits(headroom, m, middle, fraction)[0] else (low, middle)
            peak = fits(headroom, m, max(low, 1), fraction)[1]
            plan.append({"model": name, "source": m["source"], "sequence": sequence_of(m), "fraction": fraction,
                         "predicted": low, "allocated": peak["allocated_bytes"], "reserved": peak["reserved_bytes"]})
            print(name, fraction, low, flush=True)
    with open(path, "w") as f:
        json.dump(plan, f, indent=1)


def train(job):
    """One process: four steps at job["batch"]; the measured line."""
    import torch
    import torch.nn.functional as F
    sys.path.insert(0, ZOO)
    module, function = job["source"].split(":")
    model, example = getattr(importlib.import_module(module), function)()
    batch, sequence = job["batch"], job["sequence"]
    torch.cuda.set_per_process_memory_fraction(job["fraction"])
    try:
        model = model.to("cuda").train()
        if sequence:
            inputs = [torch.randint(0, 1000, (batch, sequence), device="cuda") for _ in example]
            target = torch.randint(0, 1000, (batch, sequence), device="cuda")
        else:
            inputs = [torch.randn(batch, *v.shape[1:], device="cuda") for v in example.values()]
            sides = next(iter(example.values())).shape[2:] if job["model"] == "unet" else ()
            target = torch.randint(0, 20, (batch, *sides), device="cuda")
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
        torch.cuda.reset_peak_memory_stats()
        for _ in range(4):
            out = model(*inputs)
            loss = F.cross_entropy(out.view(-1, out.size(-1)), target.view(-1)) if sequence else F.cross_entropy(out, target)
            loss = loss / 1
            del out
            loss.backward()
            del loss
            optimizer.step()
            optimizer.zero_grad()
        torch.cuda.synchronize()
        return {"trained": True, "max_allocated": torch.cuda.max_memory_allocated(),
                "max_reserved": torch.cuda.max_memory_reserved()}
    except torch.cuda.OutOfMemoryError as e:
        return {"trained": False, "error": str(e)[:160]}


def answer(job):
    done = subprocess.run([sys.executable, __file__, "one", json.dumps(job)], capture_output=True, text=True, timeout=300, check=False)
    try:
        return {**job, **json.loads(done.stdout.splitlines()[-1])}
    except (IndexError, ValueError):
        return {**job, "trained": None, "error": done.stderr[-300:]}


def run(plan, path, jobs=1):
    """`jobs` processes share the card: as long as their caps fit together, none notices."""
    asked = [{**row, "batch": batch} for row in json.load(open(plan)) for batch in (row["predicted"], row["predicted"] + 1) if batch > 0]
    with open(path, "w") as out, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for row in pool.map(answer, asked):
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(row["model"], row["fraction"], row["batch"], row.get("trained"), flush=True)


def table(path):
    rows = {}
    for line in open(path):
        row = json.loads(line)
        rows.setdefault((row["model"], row["fraction"]), {})[row["batch"] - row["predicted"]] = row
    print("| model | cap (fraction) | predicted largest batch | it trains | one more trains | allocated, error | reserved, error |")
    print("|---|---:|---:|---|---|---:|---:|")
    for pair in rows.values():
        above = pair[1]
        at = pair.get(0, {**above, "trained": None})
        error = lambda key: f"{(at[key] / at['max_' + key] - 1) * 100:+.3f} %" if at.get("trained") else ""
        yes = {True: "yes", False: "no", None: "no answer"}
        print(f"| {at['model']} | {at['fraction']} | {at['predicted']} | {yes[at['trained']]} | {yes[above['trained']]} | "
              f"{error('allocated')} | {error('reserved')} |")


if __name__ == "__main__":
    command, *rest = sys.argv[1:] or ["help"]
    if command == "predict" and len(rest) == 2:
        predict(*rest)
    elif command == "run" and len(rest) in (2, 3):
        run(*rest[:2], *map(int, rest[2:]))
    elif command == "table" and len(rest) == 1:
        table(*rest)
    elif command == "one" and len(rest) == 1:
        print(json.dumps(train(json.loads(rest[0]))))
    else:
        sys.exit(__doc__)
