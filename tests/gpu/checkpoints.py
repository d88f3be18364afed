#!/usr/bin/env python3
"""Checkpoint plans on a card: peak and time as predicted, beside the run without checkpoints.

  checkpoints.py run HEADROOM RUNNER RESULT.jsonl [--seconds N] [--only NAME] [--times TIMES]
  checkpoints.py table RESULT.jsonl       as Markdown

Runs of a zoo model at the zoo's own flags, with TIMES times its batch (4, so that the card never waits for the CPU): none, every block (also reentrant, and inside one segment of all), selective,
and two plans of `headroom checkpoint` that recompute no more than half of what every block does, in whole modules and in
any stretch of a forward. Time: the fastest of the
steps after the second, forward and backward, nothing else on the card. Overhead predicted: the plan's recomputed share.
"""
import json
import pathlib
import subprocess
import tempfile
import time

from zoo import ZOO, commands_of, error, rows_of, summary

MODELS = ["gpt2", "bert_small", "vit_16", "resnet50", "llama_small", "unet", "mobilenet_v2", "swin_small", "convnext_tiny"]


def answer(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        return {"message": done.stderr.strip()[-400:]}


def larger(flags, times):
    batch = flags.index("--batch") + 1
    return [*flags[:batch], str(int(flags[batch]) * times), *flags[batch + 1:]]


def plans(headroom, model, flags, folder):
    """Name, the flag's value, peak and share of recomputed work."""
    ask = lambda bound, by, plan: answer([headroom, "checkpoint", ZOO / model["file"], *flags, "--max-recompute", bound,
                                          "--by", by, "--plan", plan, "--format", "json"])
    rules = ask(0, "modules", folder / "none.json")["baselines"]
    yield "none", "none", 0.0
    blocks = next(r for r in rules if r["name"] == "every block")
    yield "every block", "blocks", blocks["recomputed"]
    modules = [{"module": s["module"]} for s in blocks["segments"] if "module" in s]
    yield "reentrant", written(folder, "reentrant", [{**m, "reentrant": True} for m in modules]), blocks["recomputed"]
    if one_run(modules):
        around = {"modules": [m["module"] for m in modules]}
        yield "nested", written(folder, "nested", [around, *modules]), None
    for rule in rules:
        if rule["name"] == "selective":
            kept = [{"module": s["module"], "save": s["save"]} for s in rule["segments"] if "module" in s]
            yield "selective", written(folder, "selective", kept), rule["recomputed"]
    for by in ("modules", "cuts"):
        plan = folder / f"{by}.json"
        yield f"planned, {by}", str(plan), ask(repr(blocks["recomputed"] / 2), by, plan)["chosen"]["recomputed"]


def written(folder, name, segments):
    plan = folder / f"{name}.json"
    plan.write_text(json.dumps({"schema_version": 1, "segments": segments}))
    return str(plan)


def one_run(modules):
    """They are all of one list."""
    return len({m["module"].rpartition(".")[0] for m in modules}) == 1


def seconds_of(row, phases=("forward", "backward")):
    steps = {}
    for phase in row["phases"]:
        if phase["step"] >= 2 and phase["phase"] in phases:
            steps[phase["step"]] = steps.get(phase["step"], 0) + phase["seconds"]
    return min(steps.values())


def run(options):
    end = time.monotonic() + options.seconds
    zoo = json.load(open(ZOO / "zoo.json"))["models"]
    with open(options.result, "w") as out, tempfile.TemporaryDirectory() as folder:
        for name in options.only or MODELS:
            model = next(m for m in zoo if (m["name"], m["exporter"], m["mode"]) == (name, "dynamo", "train"))
            flags = larger(model["flags"], options.times)
            for plan, flag, recomputed in plans(options.headroom, model, flags, pathlib.Path(folder)):
                row = {"model": name, "times": options.times, "plan": plan, "recomputed": recomputed}
                if time.monotonic() > end:
                    row["message"] = "not run: out of time"
                else:
                    measured = answer([options.headroom, "verify", ZOO / model["file"], *flags, "--checkpoint", flag, "--steps",
                                       "7", "--runner", options.runner, "--time-limit", "120", "--format", "json"])
                    if "rows" in measured:
                        row.update(measured["rows"][0])
                        if row["outcome"] == "completed":
                            row["seconds"] = seconds_of(row)
                            row["backward_seconds"] = seconds_of(row, ("backward",))
                        row.pop("phases", None)
                        row.pop("name", None)
                    else:
                        row.update(measured)
                out.write(json.dumps(row) + "\n")
                out.flush()
                print(row["model"], row["plan"], row.get("outcome"), row.get("message", "")[:100], flush=True)


def table(options):
    rows = rows_of(options.result)
    ran = [r for r in rows if r.get("outcome") == "completed"]
    for figure in ("allocated_bytes", "reserved_bytes"):
        print(f"{figure.split('_')[0]}: {summary([error(r, figure) for r in ran])}")
        print()
    for times in sorted({r["times"] for r in rows}, reverse=True):
        print(f"With {times} times the zoo's batch:" if times > 1 else "With the zoo's batch:")
        print()
        print("| model | placement | allocated, MiB | error | reserved, error | step without optimizer, ms | overhead | predicted |")
        print("|---|---|---:|---:|---:|---:|---:|---:|")
        for r in rows:
            if r["times"] == times:
                base = r["seconds"] if r["plan"] == "none" and "seconds" in r else base
                print(line_of(r, base))
        print()


def line_of(row, base):
    if row.get("outcome") != "completed":
        return f"| {row['model']} | {row['plan']} | | | | | {row.get('message', '')[:80]} | |"
    predicted = "" if row["recomputed"] is None else format(row["recomputed"], ".1%")
    return (f"| {row['model']} | {row['plan']} | {row['measured']['allocated_bytes'] / 2**20:.0f} | {error(row, 'allocated_bytes'):+.4%} | "
            f"{error(row, 'reserved_bytes'):+.3%} | {row['seconds'] * 1e3:.1f} | {row['seconds'] / base - 1:+.1%} | {predicted} |")


def main():
    parser, _, running = commands_of(__doc__, 300)
    running.add_argument("--times", type=int, default=4)
    options = parser.parse_args()
    {"run": run, "table": table}[options.command](options)


if __name__ == "__main__":
    main()
