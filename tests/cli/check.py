"""headroom.toml and `headroom check`: budgets and cards decide, keys are the flags, mistakes name their line.
Usage: check.py PROGRAM ZOO [--sanitized]"""

import csv
import io
import json
import os
import shutil
import sys
import tempfile

from program import Program

GOOD = """
[defaults]
model = "models/mlp.onnx"
batch = 256

[scenario.train]
budget = "8GiB"
freeze = ["layers.0.*"]
outputs = "drop"

[scenario.small-card]
memory = "1GiB"
batch = 65536
clip-grad = true

[scenario.eval]
task = "infer"
budget = "100MiB"
"""

# Text of the file, exit code, what the error says.
MISTAKES = [
    ("", 3, ["is empty"]),
    ("# nothing\n", 3, ["holds no scenario"]),
    ("[scenario.a\n", 3, ["bad.toml:1"]),
    ("[senario.a]\n", 3, ["bad.toml:1", "did you mean 'scenario'?"]),
    ('[scenario.a]\nmodel = "m.onnx"\nprecison = "bf16"\n', 3, ["bad.toml:3", "did you mean 'precision'?"]),
    ('[scenario.a]\nmodel = "m.onnx"\nprecision = "bf15"\nbudget = "1GiB"\n', 3, ["bad.toml:3", "did you mean 'bf16'?"]),
    ('[scenario.a]\nmodel = "m.onnx"\nbatch = 0.5\nbudget = "1GiB"\n', 3, ["bad.toml:3", "wants N"]),
    ('[scenario.a]\nmodel = "m.onnx"\nbatch = [1, 2]\nbudget = "1GiB"\n', 3, ["bad.toml:3", "wants N"]),
    ('[scenario.a]\nmodel = "m.onnx"\nclip-grad = "yes"\nbudget = "1GiB"\n', 3, ["bad.toml:3", "true or false"]),
    ('[scenario.a]\nmodel = "m.onnx"\nformat = "json"\nbudget = "1GiB"\n', 3, ["bad.toml:3", "no key 'format'"]),
    ('[scenario.a]\nbudget = "1GiB"\n', 3, ["bad.toml:1", "names no model"]),
    ('[scenario.a]\nmodel = "m.onnx"\n', 3, ["bad.toml:1", "held to nothing"]),
    ("a = " + "[" * 5000, 3, ["bad.toml:1"]),
    ("#" * (1 << 20) + "\n", 3, ["larger than 1 MiB"]),
]

failures = 0


def expect(what, fine):
    global failures
    if not fine:
        failures += 1
        print("not so: " + what)


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)


def check_answers(program, folder):
    write(folder, "headroom.toml", GOOD)
    answer = program(["check"], folder)
    expect(f"exit 1 when one scenario fails, not {answer.code}: {answer.err}", answer.code == 1)
    lines = answer.out.splitlines()
    expect("one line a scenario, in the file's order",
           [line.split()[0] for line in lines] == ["ok", "does", "over"] and "train" in lines[0])
    told = json.loads(program(["check", "--format", "json"], folder).out)
    expect("JSON: which passed", [s["passed"] for s in told["scenarios"]] == [True, False, False])
    for scenario, flags in zip(told["scenarios"], (
            ["--freeze", "layers.0.*", "--outputs", "drop", "--batch", "256"],
            ["--memory", "1GiB", "--batch", "65536", "--clip-grad"],
            ["--task", "infer", "--batch", "256"])):
        alone = json.loads(program(["estimate", "models/mlp.onnx", "--format", "json", *flags], folder).out)
        expect(f"{scenario['name']}: the figures of estimate",
               all(alone["peak"][key] == n for key, n in scenario["peak"].items()))
    expect("a folder stands for the headroom.toml in it",
           program(["check", folder], "/").out.splitlines()[0] == lines[0])
    rows = list(csv.DictReader(io.StringIO(program(["check", "--format", "csv"], folder).out)))
    expect("CSV: verdicts", [row["verdict"] for row in rows] == ["ok", "does not fit", "over"])
    expect("Markdown: a row a scenario", program(["check", "--format", "md"], folder).out.count("\n") == 5)

    write(folder, "headroom.toml", GOOD + '[scenario.gone]\nmodel = "gone.onnx"\nbudget = "1GiB"\n')
    answer = program(["check"], folder)
    expect(f"exit 3 when a model cannot be read, not {answer.code}", answer.code == 3)
    expect("the other scenarios are answered all the same", len(answer.out.splitlines()) == 4)


def check_mistakes(program, folder):
    for text, code, says in MISTAKES:
        write(folder, "bad.toml", text)
        for problem in program.error_problems(program(["check", "bad.toml"], folder), code, says):
            expect(f"{text[:60]!r}: {problem}", False)
    for problem in program.error_problems(program(["check", "missing.toml"], folder), 3, ["no such file"]):
        expect(f"missing.toml: {problem}", False)


def check_hostile(program, folder):
    name = "=\\u001b[31m<b>|`x`\\u202e"
    write(folder, "headroom.toml", f'[scenario."{name}"]\nmodel = "models/mlp.onnx"\nbatch = 2\nbudget = "9GiB"\n')
    for form in ("table", "csv", "md"):
        out = program(["check", "--format", form], folder).out
        expect(f"{form}: harmless", "\x1b" not in out and "\u202e" not in out and (form != "md" or "<" not in out))
        expect(f"{form}: no formula", not any(line.startswith("=") for line in out.splitlines()))


def check_budget(program, folder):
    ask = ["estimate", "models/mlp.onnx", "--batch", "256", "--format", "json"]
    device = json.loads(program(ask, folder).out)["peak"]["device_bytes"]
    for budget, code in ((device, 0), (device - 1, 1)):
        answer = program([*ask, "--budget", f"{budget}B"], folder)
        expect(f"--budget {budget - device}: exit {code}, not {answer.code}", answer.code == code)
        expect("--budget: said in the JSON", json.loads(answer.out)["within_budget"] is (code == 0))
    for problem in program.error_problems(program([*ask, "--budget", "much"], folder), 2, ["--budget wants a size"]):
        expect(f"--budget much: {problem}", False)


def main():
    program = Program(sys.argv[1], "--sanitized" in sys.argv)
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "models"))
        shutil.copy(os.path.join(sys.argv[2], "mlp.onnx"), os.path.join(folder, "models"))
        check_answers(program, folder)
        check_mistakes(program, folder)
        check_hostile(program, folder)
        check_budget(program, folder)
    sys.exit(1 if failures else 0)


main()
