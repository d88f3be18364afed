#!/usr/bin/env python3
"""The zoo on a card: what headroom-runner measures, beside the estimate.

  zoo.py run HEADROOM RUNNER RESULT.jsonl [--jobs N] [--seconds N] [--only NAME] [--with="--checkpoint blocks"]
  zoo.py table RESULT.jsonl                the summary and what is not exact, as Markdown
  zoo.py estimate HEADROOM RESULT.jsonl [-- FLAGS]   the same runs, estimated again on any machine: --gpu h200, --profile FILE
  zoo.py profiles HEADROOM RESULT.jsonl PROFILE.json ...   the convolutional ones with each profile and with none, as Markdown

Zoo (the dynamo export in training mode; for recurrent networks the TorchScript one) × {fp32, amp-bf16, bf16} ×
{sgd-momentum, adamw} × two sizes. One measurement, one process (`headroom verify`); N of them share the card, which
changes no allocator statistics. The last step's events of runs that are not exact go to RESULT.jsonl.events.gz. Device
bytes are measured again, each alone, in the time that is left.
"""
import argparse
import concurrent.futures
import gzip
import json
import lzma
import pathlib
import random
import subprocess
import tempfile
import time

ZOO = pathlib.Path(__file__).resolve().parents[2] / "models" / "zoo"
PRECISIONS = ["fp32", "amp-bf16", "bf16"]
OPTIMIZERS = ["sgd-momentum", "adamw"]
SIZES = [1, 0.375]  # of the zoo's own batch
CONVOLUTIONAL = ("vgg16", "resnet50", "se_resnet", "mobilenet_v2", "convnext_tiny", "inception", "unet", "diffusion_unet", "dcgan")


def questions():
    seen = set()
    for m in json.load(open(ZOO / "zoo.json"))["models"]:
        if m["mode"] != "train" or m["name"] in seen or (m["exporter"] == "ts" and m["name"] not in ("lstm_lm", "gru_speech")):
            continue
        seen.add(m["name"])
        given = dict(zip(m["flags"][::2], m["flags"][1::2]))
        for size in SIZES:
            for precision in PRECISIONS:
                for optimizer in OPTIMIZERS:
                    flags = {**given, "--batch": str(max(1, int(int(given["--batch"]) * size))),
                             "--precision": precision, "--optimizer": optimizer}
                    arguments = [x for pair in flags.items() for x in pair]
                    arguments += [x for name in m["frozen"] for x in ("--freeze", name)]
                    yield {"model": m["name"], "file": m["file"], "size": size, "precision": precision,
                           "optimizer": optimizer, "arguments": arguments}


def verify(headroom, runner, question):
    """The row, and the last step's events where a figure is not exact."""
    with tempfile.NamedTemporaryFile(suffix=".json") as events:
        done = subprocess.run([headroom, "verify", str(ZOO / question["file"]), *question["arguments"], "--runner", runner,
                               "--time-limit", "120", "--format", "json", "--events", events.name],
                              capture_output=True, text=True, check=False)
        row = row_of(question, done)
        inexact = row.get("outcome") == "completed" and any(error(row, f) for f in ("allocated_bytes", "reserved_bytes"))
        return row, open(events.name).read() if inexact else None


def row_of(question, done):
    row = {k: v for k, v in question.items() if k != "arguments"}
    row["exit"] = done.returncode
    try:
        row.update(json.loads(done.stdout)["rows"][0])
        row.pop("phases", None)
    except ValueError:
        row["message"] = done.stderr.strip()[-400:]
    return row


def run(options):
    end = time.monotonic() + options.seconds
    rows = [q for q in questions() if not options.only or q["model"] in options.only]
    random.Random(0).shuffle(rows)  # large models do not meet, and what time allows is a fair sample
    for q in rows:
        q["arguments"] += options.more.split()
    with (open(options.result, "w") as out, gzip.open(options.result + ".events.gz", "wt") as kept,
          concurrent.futures.ThreadPoolExecutor(options.jobs) as pool):

        def one(question):
            if time.monotonic() > end:
                return {"model": question["model"], "message": "not run: out of time"}, None
            return verify(options.headroom, options.runner, question)

        for done, (row, events) in enumerate(pool.map(one, rows), 1):
            out.write(json.dumps(row) + "\n")
            if events:
                of = {key: row[key] for key in ("model", "size", "precision", "optimizer")}
                kept.write(json.dumps({**of, **json.loads(events)}) + "\n")
            out.flush()
            print(done, len(rows), row["model"], row.get("precision"), row.get("optimizer"), row.get("size"), row.get("exit"),
                  row.get("message", "")[:100], flush=True)
        for question in rows[:: max(1, len(rows) // 24)]:
            if time.monotonic() > end:
                break
            row, _ = verify(options.headroom, options.runner, question)
            out.write(json.dumps({**row, "alone": True}) + "\n")
            out.flush()


def error(row, figure):
    measured = row["measured"][figure]
    return None if not measured else row["estimated"][figure] / measured - 1


def distribution(errors):
    """Median, 95th percentile and most of their sizes, and how many are 0."""
    sizes = sorted(abs(e) for e in errors)
    at = lambda share: sizes[min(len(sizes) - 1, int(share * len(sizes)))]
    return f"{at(0.5):.4%}", f"{at(0.95):.3%}", f"{sizes[-1]:.3%}", f"{sizes.count(0)} of {len(sizes)}"


def summary(errors):
    return "median {}, p95 {}, max {}, exact {}".format(*distribution(errors)) if errors else "none"


def rows_of(path):
    with (lzma.open if path.endswith(".xz") else open)(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def table(options):
    rows = rows_of(options.result)
    answered = [r for r in rows if r.get("outcome") == "completed"]
    shared, alone = [r for r in answered if not r.get("alone")], [r for r in answered if r.get("alone")]
    shared.sort(key=lambda r: (r["model"], r["size"], r["precision"], r["optimizer"]))
    print(f"{len(shared)} of {sum(not r.get('alone') for r in rows)} ran.\n")
    for figure in ("allocated_bytes", "reserved_bytes"):
        print(f"{figure.split('_')[0]}: {summary([error(r, figure) for r in shared])}\n")
    apart = [r["estimated"]["device_bytes"] - r["measured"]["device_bytes"] for r in alone if r["measured"]["device_bytes"]]
    if apart:
        print(f"device, {len(apart)} runs alone on the card: from {min(apart) / 2**20:+.1f} to {max(apart) / 2**20:+.1f} MiB\n")
    print("| model | size | precision | optimizer | allocated | reserved | the events part at |")
    print("|---|---:|---|---|---:|---:|---|")
    for r in shared:
        errors = [error(r, f) for f in ("allocated_bytes", "reserved_bytes")]
        if any(errors):
            parting = r.get("parting", {})
            print(f"| {r['model']} | {r['size']} | {r['precision']} | {r['optimizer']} | {errors[0]:+.4%} | {errors[1]:+.4%} | "
                  f"{parting.get('estimated', '')} / {parting.get('measured', '')} |")
    for r in rows:
        if r.get("outcome") != "completed":
            print(f"\n{r['model']} {r.get('precision', '')} {r.get('optimizer', '')}: {r.get('message', '')}")


def errors_now(headroom, rows, flags):
    """Errors of estimates made now against what was measured then, by figure."""
    asked = {(q["model"], q["size"], q["precision"], q["optimizer"]): q for q in questions()}

    def one(row):
        question = asked[row["model"], row["size"], row["precision"], row["optimizer"]]
        done = subprocess.run([headroom, "estimate", str(ZOO / question["file"]), *question["arguments"], *flags,
                               "--format", "json"], capture_output=True, text=True, check=False)
        return json.loads(done.stdout)["peak"]

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        peaks = list(pool.map(one, rows))
    return {figure: [peak[figure] / row["measured"][figure] - 1 for row, peak in zip(rows, peaks)]
            for figure in ("allocated_bytes", "reserved_bytes")}


def measured_rows(options, convolutional):
    return [r for r in rows_of(options.result) if r.get("outcome") == "completed" and not r.get("alone")
            and (r["model"] in CONVOLUTIONAL) == convolutional]


def estimate(options):
    for convolutional in (True, False):
        rows = measured_rows(options, convolutional)
        for figure, errors in errors_now(options.headroom, rows, options.flags).items():
            print(f"{'convolutional' if convolutional else 'other'} networks, {figure.split('_')[0]}: {summary(errors)}")


def profiles(options):
    rows = [r for r in measured_rows(options, True) if not options.only or r["model"] in options.only]
    print("| profile | calls | allocated: median | p95 | max | exact | reserved: median | p95 | max | exact |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    read = [json.load((lzma.open if path.endswith(".xz") else open)(path, "rt")) for path in options.profiles]
    # The rule alone: a table of a geometry that no network has.
    nowhere = {**read[0]["convolutions"], "measured": 1,
               "table": [read[0]["convolutions"]["table"][0], "11 s11 p0 d1 f 15", "8>8 11;1 - - -"]}
    named = [("none: by rule", 0, {**read[0], "convolutions": nowhere})]
    named += [(pathlib.Path(path).name, p["convolutions"]["measured"], p) for path, p in zip(options.profiles, read)]
    for name, calls, profile in named:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(profile, file)
            file.flush()
            found = errors_now(options.headroom, rows, ["--gpu", "h200", "--profile", file.name])
        print("|", " | ".join([name, str(calls), *(cell for errors in found.values() for cell in distribution(errors))]), "|")


def commands_of(description, seconds):
    """Parser, its commands and the one that runs: `run HEADROOM RUNNER RESULT` and `table RESULT`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    for name in ("headroom", "runner", "result"):
        running.add_argument(name)
    running.add_argument("--seconds", type=int, default=seconds)
    running.add_argument("--only", action="append")
    commands.add_parser("table").add_argument("result")
    return parser, commands, running


def main():
    parser, commands, running = commands_of(__doc__, 330)
    running.add_argument("--jobs", type=int, default=8)
    running.add_argument("--with", dest="more", default="", help="more flags for every run")
    again = commands.add_parser("estimate")
    for name in ("headroom", "result"):
        again.add_argument(name)
    again.add_argument("flags", nargs="*")
    compared = commands.add_parser("profiles")
    for name in ("headroom", "result"):
        compared.add_argument(name)
    compared.add_argument("profiles", nargs="+")
    compared.add_argument("--only", action="append")
    options = parser.parse_args()
    {"run": run, "table": table, "estimate": estimate, "profiles": profiles}[options.command](options)


if __name__ == "__main__":
    main()
