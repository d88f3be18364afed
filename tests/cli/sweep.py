"""`headroom sweep`: every cell is what `headroom estimate` says with the same flags, in every format.
Usage: sweep.py PROGRAM ZOO [--sanitized]"""

import csv
import io
import itertools
import json
import os
import re
import sys

from program import Program

failures = 0


def expect(what, fine):
    global failures
    if not fine:
        failures += 1
        print("not so: " + what)


class Question:
    def __init__(self, program, zoo):
        self.program, self.zoo = program, zoo

    def __call__(self, command, flags, code=(0,), model="gpt2.onnx"):
        answer = self.program([command, os.path.join(self.zoo, model), *flags], self.zoo)
        expect(f"{command} {flags}: exit {answer.code}, not one of {code}: {answer.err[:200]!r}", answer.code in code)
        for problem in self.program.problems(answer):
            expect(f"{command} {flags}: {problem}", False)
        return answer

    def json(self, command, flags, code=(0,), **more):
        return json.loads(self(command, [*flags, "--format", "json"], code, **more).out)


def check_every_knob(ask):
    """Two knobs at a time: each cell as one estimate with those flags."""
    knobs = [("batch", "1:4", ["1", "2", "4"]), ("seq", "32:64:32", ["32", "64"]), ("precision", "fp32,amp-fp16", None),
             ("optimizer", "sgd,adafactor", None), ("optimizer-impl", "fused,for-loop", None), ("loss", "causal-lm,sum", None),
             ("accumulate", "1,2", None), ("zero-grad", "after-step,before-forward", None), ("outputs", "keep,drop", None),
             ("checkpoint", "none,blocks", None), ("attention", "math,efficient", None), ("task", "train,infer", None),
             ("torch", "2.11,2.13", None), ("gpu", "rtx3060,h100", None), ("memory", "2GiB,80GiB", None),
             ("clip-grad", "on,off", None), ("keep-grads", "off,on", None), ("freeze", "wte.*,h.0.*", None),
             ("steps", "1,4", None), ("alloc-conf", "expandable_segments:True,max_split_size_mb:64", [
                 "expandable_segments:True,max_split_size_mb:64"]), ("seqs", "64,32,48", ["64,32,48"])]
    known = {"batch": "2", "seq": "32"}
    for name, text, values in knobs:
        values = values or text.split(",")
        fixed = [word for knob, n in known.items() if knob != name and not (name == "seqs" and knob == "seq")
                 for word in (f"--{knob}", n)]
        other = "keep-grads" if name == "clip-grad" else "clip-grad"
        cells = ask.json("sweep", [*fixed, "--over", f"{name}={text}", "--over", f"{other}=off,on"], (0, 1))["cells"]
        expect(f"{name}: a cell for each combination", len(cells) == 2 * len(values))
        for cell in cells:
            flags = list(fixed)
            for axis, value in cell["axes"].items():
                if value == "on":
                    flags.append(f"--{axis}")
                elif value != "off":
                    flags.append(f"--{axis}={value}")
            e = ask.json("estimate", flags, (0, 1))
            same = all(e["peak"][key] == n for key, n in cell["peak"].items()) and e.get("fits") == cell.get("fits")
            expect(f"{flags}: {cell['peak']}, not {e['peak']}", same)


def check_dimension(ask):
    cells = ask.json("sweep", ["--batch", "2", "--seq", "16", "--over", "decoder_sequence=8,16"], model="translator.onnx")["cells"]
    for cell in cells:
        n = cell["axes"]["decoder_sequence"]
        e = ask.json("estimate", ["--batch", "2", "--seq", "16", "--dim", f"decoder_sequence={n}"], model="translator.onnx")
        expect(f"decoder_sequence {n}", e["peak"]["reserved_bytes"] == cell["peak"]["reserved_bytes"])


def check_cards(ask):
    """Several cards are an axis; a cell that does not fit is marked in every format."""
    question = ["--seq", "256", "--over", "batch=8,64", "--gpu", "rtx3060", "--gpu", "h100"]
    cells = ask.json("sweep", question)["cells"]
    expect("gpu is the last axis", [list(c["axes"]) for c in cells] == [["batch", "gpu"]] * 4)
    expect("64 fits on the large card only", [c["fits"] for c in cells] == [True, True, False, True])
    for form in ("table", "md", "html"):
        expect(f"{form}: marks it", "✗" in ask("sweep", [*question, "--format", form]).out)
    expect("latex: marks it", "$\\times$" in ask("sweep", [*question, "--format", "latex"]).out)
    expect("exit 1 when nothing fits", ask("sweep", ["--seq", "256", "--over", "batch=8,16", "--memory", "2GiB"], (1,)).out)


def check_failures(ask):
    answer = ask.json("sweep", ["--batch", "2", "--seq", "32", "--over", "freeze=wte.*,nothing.*"])
    expect("the failed cell says why", "matches no parameter" in answer["cells"][1]["error"]["what"])
    expect("and has no peak", "peak" not in answer["cells"][1] and "peak" in answer["cells"][0])
    expect("the table says why", "matches no parameter" in ask("sweep", ["--batch", "2", "--seq", "32", "--over", "freeze=wte.*,nothing.*"]).out)
    for flags, code, says in [([], 2, "wants an axis"), (["--over", "batch"], 2, "AXIS=VALUE"), (["--over", "bach=1,2"], 2, "did you mean 'batch'"),
                              (["--over", "precision=fp31"], 2, "did you mean"), (["--over", "batch=4:1"], 2, "is no range"),
                              (["--over", "batch=1:4:0"], 2, "is no range"), (["--over", "batch=1:1000000:1", "--over", "seq=1:1000:1"], 2, "too many"),
                              (["--over", "clip-grad=maybe"], 2, "on or off"), (["--over", "batch=1,x"], 2, "whole number"),
                              (["--over", "format=json"], 2, "no flag of the scenario"), (["--over", "batch=1,2", "--metric", "weight"], 2, "did you mean 'weights'"),
                              (["--over", "freeze=a,b"], 2, "matches no parameter"), (["--over", "batch=1,2", "-j", "0"], 2, "above 0")]:
        answer = ask("sweep", ["--seq", "32", *(["--batch", "2"] if not any("batch" in f for f in flags) else []), *flags], (code,))
        for problem in ask.program.error_problems(answer, code, [says]):
            expect(f"{flags}: {problem}: {answer.err!r}", False)


def check_formats(ask):
    question = ["--over", "batch=1,2", "--over", "precision=fp32,bf16", "--over", "seq=32,64", "--gpu", "rtx3060"]
    cells = ask.json("sweep", question)["cells"]
    expect("row-major, the last axis fastest", [(c["axes"]["batch"], c["axes"]["precision"], c["axes"]["seq"]) for c in cells] ==
           list(itertools.product((1, 2), ("fp32", "bf16"), (32, 64))))
    rows = list(csv.DictReader(io.StringIO(ask("sweep", [*question, "--format", "csv"]).out)))
    expect("csv: as the JSON", [(int(r["batch"]), r["precision"], int(r["reserved_bytes"]), r["fits"] == "yes") for r in rows] ==
           [(c["axes"]["batch"], c["axes"]["precision"], c["peak"]["reserved_bytes"], c["fits"]) for c in cells])
    table = ask("sweep", [*question, "--metric", "reserved,weights"]).out
    expect("a table for each metric", "reserved, " in table and "weights, MiB" in table)
    numbers = re.findall(r"\d+\.\d+", table.split("weights")[0].split("reserved")[1])
    unit = (1 << 30) if "reserved, GiB" in table else (1 << 20)
    expect("table: the JSON's figures", [round(float(n), 1) for n in numbers] == [round(round(c["peak"]["reserved_bytes"] / unit, 2), 1) for c in cells])
    for form, holds in [("md", "|---:|"), ("latex", "\\bottomrule"), ("html", "</table>")]:
        first = ask("sweep", [*question, "--format", form]).out
        expect(f"{form}: holds {holds!r}", holds in first)
        expect(f"{form}: the same bytes again, by one thread", ask("sweep", [*question, "--format", form, "--threads", "1"]).out == first)


def main():
    ask = Question(Program(sys.argv[1], sanitized="--sanitized" in sys.argv), os.path.abspath(sys.argv[2]))
    check_every_knob(ask)
    check_dimension(ask)
    check_cards(ask)
    check_failures(ask)
    check_formats(ask)
    sys.exit(1 if failures else 0)


main()
