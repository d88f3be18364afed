#!/usr/bin/env python3
"""headroom checkpoint as a process: what it plans, estimate finds again; nothing that it offers is worse than placing by
rule; what it is asked wrongly, it says."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

HEADROOM, ZOO = sys.argv[1], pathlib.Path(sys.argv[2])
FAILED = []


def run(*arguments):
    done = subprocess.run([HEADROOM, *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def check(name, holds, *about):
    if not holds:
        FAILED.append(name)
        print("failed:", name, *about)


def asked(model, *flags):
    code, out, err = run("checkpoint", ZOO / f"{model}.onnx", *flags, "--format", "json")
    check(f"{model} {' '.join(map(str, flags))}: answered", code in (0, 1) and out, code, err)
    return code, json.loads(out)


def allocated(placement):
    return placement["peak"]["allocated_bytes"]


MODELS = {
    "gpt2": ["--batch", "4", "--seq", "256", "--loss", "causal-lm"],
    "unet": ["--batch", "2"],
    "resnet50": ["--batch", "8", "--optimizer", "sgd-momentum", "--precision", "amp-bf16"],
    "translator": ["--batch", "4", "--seq", "64", "--dim", "decoder_sequence=48"],
    "vgg16": ["--batch", "4"],
}

with tempfile.TemporaryDirectory() as folder:
    plan = pathlib.Path(folder) / "plan.json"
    cuts = asked("gpt2", "--batch", "8", "--seq", "512", "--loss", "causal-lm", "--max-recompute", "8%", "--by", "cuts")[1]
    keeping = [s for s in cuts["chosen"]["segments"] if "save" in s and "module" not in s]
    named = re.findall(r"context_fn=(keeping_\d+)", cuts["code"])
    check("stretches that keep results say so in the code", keeping and len(named) == len(keeping), keeping, named)
    check("what they keep is defined", all(f"{name} = partial(" in cuts["code"] for name in named), named)
    compile(cuts["code"], "the code of stretches", "exec")
    for model, flags in MODELS.items():
        code, answer = asked(model, *flags, "--max-recompute", "15%", "--plan", plan)
        chosen = answer["chosen"]
        check(f"{model}: within the bound", chosen["recomputed"] <= 0.15, chosen["recomputed"])
        check(f"{model}: no more memory", allocated(chosen) <= allocated(answer["baselines"][0]))
        code, out, err = run("estimate", ZOO / f"{model}.onnx", *flags, "--checkpoint", plan, "--format", "json")
        check(f"{model}: the plan file is read", code == 0, err)
        check(f"{model}: estimate finds the same peak",
              json.loads(out)["peak"]["allocated_bytes"] == allocated(chosen))
        front = answer["front"]
        for a, b in zip(front, front[1:]):
            check(f"{model}: a front", allocated(a) > allocated(b) and a["recomputed_work"] < b["recomputed_work"])
        for baseline in answer["baselines"]:
            bound = str(baseline["recomputed"] * 1.0000001)
            best = asked(model, *flags, "--max-recompute", bound)[1]["chosen"]
            check(f"{model}: no worse than {baseline['name']}", allocated(best) <= allocated(baseline))
        total = answer["baselines"][0]["peak"]["device_bytes"] * 9 // 10
        code, fitted = asked(model, *flags, "--memory", f"{total}B")
        check(f"{model}: fits or says no", code == (0 if "chosen" in fitted else 1))
        if code == 0:
            check(f"{model}: what is chosen fits", fitted["chosen"]["fits"])

code, out, err = run("checkpoint", ZOO / "gpt2.onnx", "--batch", "4", "--seq", "256", "--memory", "1GiB")
check("nothing fits: exit 1", code == 1 and "nothing fits" in out, code, out, err)
for flags, word in [
    (["--task", "infer"], "training"),
    (["--max-recompute", "lots"], "20%"),
    (["--by", "module"], "modules"),
    (["--plan", "x.json"], "--max-recompute"),
]:
    code, out, err = run("checkpoint", ZOO / "gpt2.onnx", "--batch", "1", "--seq", "16", *flags)
    check(f"{flags}: usage", code == 2 and word in err, code, err)

with tempfile.TemporaryDirectory() as folder:
    for text, word in [
        ("{", "JSON"), ("[]", "segments"), ('{"segments": {}}', "list"),
        ('{"segments": [{"modul": "h.0"}]}', '"module"'), ('{"segments": [{"module": "h.99"}]}', "h.9"),
        ('{"segments": [{"calls": [5, 5]}]}', "begins below"), ('{"segments": [{"calls": [0, 9]}, {"calls": [4, 12]}]}', "overlap"),
        ('{"calls": 3, "segments": []}', "3 calls"), ('{"segments": [{"module": "h.0", "calls": [0, 2]}]}', "one of"),
        ('{"segments": [{"calls": [-1, 2]}]}', "whole number"), ("[" * 5000, "deep"),
    ]:
        path = pathlib.Path(folder) / "plan.json"
        path.write_text(text)
        code, out, err = run("estimate", ZOO / "gpt2.onnx", "--batch", "1", "--seq", "16", "--checkpoint", path)
        check(f"plan file {text[:60]}", code in (2, 3) and word in err, code, err)
    nested = {"segments": [{"modules": ["h.0", "h.3"]}, {"module": "h.1"}]}
    path.write_text(json.dumps(nested))
    code, out, err = run("estimate", ZOO / "gpt2.onnx", "--batch", "1", "--seq", "16", "--checkpoint", path)
    check("nested segments", code == 0, err)

print(f"{len(FAILED)} failed")
sys.exit(bool(FAILED))
