"""`headroom diff`: the figures are those of estimate, the parts sum to them, saved estimates answer as the models do,
a tolerance decides the exit status. Usage: diff.py PROGRAM ZOO [--sanitized]"""

import csv
import io
import json
import os
import re
import sys
import tempfile

from onnx_wire import graph, metadata, model, node, tensor, value
from program import Program

HOSTILE = "\x1b]0;pwned\x07<script>|`$x$`*_[a](http://b)\u202e\r\n=1+1,\"'"
SIDES = (["--batch", "8", "--seq", "64"], ["--batch", "16", "--seq", "64", "--precision", "amp-bf16"])

failures = 0


def expect(what, fine):
    global failures
    if not fine:
        failures += 1
        print("not so: " + what)


def check_figures(program, zoo, folder):
    file = os.path.join(zoo, "gpt2.onnx")
    told = json.loads(program(["diff", file, *SIDES[0], "--", *SIDES[1][:2], *SIDES[1][4:], "--format", "json"], folder).out)
    alone = [json.loads(program(["estimate", file, *side, "--format", "json"], folder).out) for side in SIDES]
    for side, answer in zip(("before", "after"), alone):
        expect(f"{side}: the peaks of estimate",
               all(told[side]["peak"][f"{key}_bytes"] == answer["peak"][f"{key}_bytes"]
                   for key in ("allocated", "reserved", "device")))
        expect(f"{side}: estimate's modules and rounding sum to the peak",
               sum(m["bytes"] for m in answer["modules"]) + answer["categories"]["rounding"] ==
               answer["peak"]["allocated_bytes"])
        expect(f"{side}: the categories sum to the peak",
               sum(c[f"{side}_bytes"] for c in told["categories"]) == answer["peak"]["allocated_bytes"])
    expect("the categories' changes sum to the peak's",
           sum(c["change_bytes"] for c in told["categories"]) == told["change"]["allocated_bytes"])
    expect("the settings that changed", [s["name"] for s in told["settings"]] == ["batch", "precision"])
    blocks = [m for m in told["modules"] if m["module"] == "h.*"]
    expect("the blocks are one line", len(blocks) == 1 and blocks[0]["modules"] == 12)
    inside = [m for m in alone[0]["modules"] if m["module"].startswith("h.")]
    expect("a line holds its children", blocks and blocks[0]["before_bytes"] == sum(m["bytes"] for m in inside))

    for name, answer in zip(("before.json", "after.json"), alone):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
            json.dump(answer, out)
    saved = json.loads(program(["diff", "before.json", "after.json", "--format", "json"], folder).out)
    expect("saved estimates give the same answer", saved == told)
    mixed = json.loads(program(["diff", "before.json", file, *SIDES[1], "--format", "json"], folder).out)
    expect("a saved estimate beside a model too", mixed == told)

    grown = told["change"]["allocated_bytes"]
    reserved = told["change"]["reserved_bytes"]
    for tolerance, code in ((f"{max(grown, reserved)}B", 0), (f"{max(grown, reserved) - 1}B", 1), ("900%", 0), ("1%", 1)):
        answer = program(["diff", "before.json", "after.json", "--tolerance", tolerance], folder)
        expect(f"--tolerance {tolerance}: exit {code}, not {answer.code}", answer.code == code)
    answer = program(["diff", "after.json", "before.json", "--tolerance", "0B"], folder)
    expect(f"what shrinks is borne: exit 0, not {answer.code}", answer.code == 0)
    answer = program(["diff", "before.json", "before.json"], folder)
    expect("nothing changed: exit 0", answer.code == 0 and "h.*" not in answer.out)


def check_mistakes(program, folder):
    with open(os.path.join(folder, "before.json"), encoding="utf-8") as file:
        good = file.read()
    for what, text in (("cut", good[:-20]), ("empty object", "{}"), ("deep", '{"a":' * 200_000),
                       ("old", good.replace('"schema_version": 1', '"schema_version": 2')),
                       ("fraction", re.sub(r'"allocated_bytes": (\d+)', r'"allocated_bytes": \1.5', good, count=1)),
                       ("text", good.replace('"modules": [', '"modules": ["x", ')),
                       ("overflow", re.sub(r'"bytes": \d+', '"bytes": 9223372036854775807', good))):
        with open(os.path.join(folder, "bad.json"), "w", encoding="utf-8") as file:
            file.write(text)
        for problem in program.error_problems(program(["diff", "bad.json", "after.json"], folder), 3, []):
            expect(f"{what}: {problem}", False)
    for arguments, says in ((["before.json"], "two files"), (["a", "b", "c"], "two files"), ([], "two files"),
                            (["before.json", "after.json", "--batch", "3"], "--batch has no effect"),
                            (["before.json", "after.json", "--tolerance", "x"], "--tolerance wants"),
                            (["before.json", "--", "--bacth", "3"], "--batch")):
        for problem in program.error_problems(program(["diff", *arguments], folder), 2, [says]):
            expect(f"{arguments}: {problem}", False)


def check_hostile(program, folder):
    for name, width in (("=<b>.onnx", 64), ("=<i>.onnx", 96)):
        body = graph([node("MatMul", ["x", HOSTILE + ".weight"], ["h"], HOSTILE) +
                      metadata(**{"pkg.torch.onnx.name_scopes": f"['', '{HOSTILE}', 'h']"}),
                      node("Relu", ["h"], [HOSTILE])],
                     [value("x", [HOSTILE, 64])], [value(HOSTILE)], [tensor(HOSTILE + ".weight", [64, width])], HOSTILE)
        with open(os.path.join(folder, name), "wb") as file:
            file.write(model(body))
    for form in ("table", "csv", "md"):
        answer = program(["diff", "=<b>.onnx", "=<i>.onnx", "--batch", "4096", "--format", form], folder)
        expect(f"{form}: exit 0 instead of {answer.code}: {answer.err!r}", answer.code == 0)
        expect(f"{form}: no control or bidirectional characters",
               not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e]", answer.out))
        if form == "csv":
            rows = list(csv.reader(io.StringIO(answer.out)))
            expect("csv: five columns", {len(row) for row in rows} == {5})
            expect("csv: no formula", not any(row[1][:1] in ("=", "+", "@") for row in rows))
        if form == "md":
            expect("md: no HTML but our own", set(re.findall("<[^>]*>", answer.out)) <=
                   {"<details>", "</details>", "<summary>", "</summary>"})


def main():
    program = Program(sys.argv[1], "--sanitized" in sys.argv)
    with tempfile.TemporaryDirectory() as folder:
        check_figures(program, os.path.abspath(sys.argv[2]), folder)
        check_mistakes(program, folder)
        check_hostile(program, folder)
    sys.exit(1 if failures else 0)


main()
