"""`headroom advise` over the zoo: every step, run again with the flags that it prints, gives the figures that it prints;
the set of changes that is chosen fits. Usage: advise.py PROGRAM ZOO [--all] [--sanitized]"""

import json
import os
import sys
import tempfile

from program import Program

# One of each kind: what CI has time for.
SAMPLE = {"mlp.onnx", "resnet50.ts.onnx", "bert_small.dynamo-eval.onnx", "gpt2.onnx", "gpt_lora.onnx", "lstm_lm.ts.onnx",
          "translator.onnx"}
# Loops that hold more than they need: each has its step.
WASTEFUL = ["--leak", "loss", "--keep-grads", "--zero-grad", "before-backward", "--attention", "math", "--clip-grad"]

failures = 0


def expect(what, fine):
    global failures
    if not fine:
        failures += 1
        print("not so: " + what)


def peak(program, file, flags, folder):
    answer = program(["estimate", file, *flags, "--format", "json"], folder)
    if answer.code not in (0, 1):
        return answer.err
    told = json.loads(answer.out)
    return told["peak"]["allocated_bytes"], told["peak"]["reserved_bytes"], told.get("fits")


def figures(run):
    return run["peak"]["allocated_bytes"], run["peak"]["reserved_bytes"], run.get("fits")


def check_model(program, file, flags, folder):
    """Returns the keys of the steps."""
    name = f"{os.path.basename(file)} {' '.join(flags)}"
    alone = json.loads(program(["estimate", file, *flags, "--format", "json"], folder).out)
    memory = f"{alone['peak']['device_bytes'] * 6 // 10}B"
    question = [*flags, "--memory", memory]
    answer = program(["advise", file, *question, "--format", "json"], folder)
    expect(f"{name}: exit {answer.code}: {answer.err}", answer.code in (0, 1))
    told = json.loads(answer.out)
    expect(f"{name}: what it starts from", figures(told["base"]) == peak(program, file, question, folder))

    before = told["base"]
    for step in told["steps"]:
        for way in ("alone", "together"):
            again = peak(program, file, step[way]["flags"], folder)
            expect(f"{name}: {step['key']} {way}: {figures(step[way])}, again {again}", again == figures(step[way]))
        as_printed = [f for f in question if f not in step["leave_away"]] + step["add"]
        expect(f"{name}: {step['key']}: its flags behind those of the question give its figure",
               peak(program, file, as_printed, folder) == figures(step["alone"]))
        for key in ("allocated_bytes", "reserved_bytes"):
            expect(f"{name}: {step['key']}: what it saves",
                   step["alone"]["saved"][key] == told["base"]["peak"][key] - step["alone"]["peak"][key] and
                   step["together"]["saved"][key] == before["peak"][key] - step["together"]["peak"][key])
        if step["kept"]:
            before = step["together"]
        expect(f"{name}: {step['key']}: says what it costs and what to write",
               step["code"] and all(step["cost"][k] for k in ("compute", "accuracy", "effort")))
    if "validation" in told:
        expect(f"{name}: validation", peak(program, file, told["validation"]["flags"], folder) == figures(told["validation"]))

    chosen = told["chosen"]
    expect(f"{name}: exit status {answer.code}", answer.code == (0 if chosen["fits"] else 1))
    expect(f"{name}: the chosen set again", peak(program, file, chosen["flags"], folder) == figures(chosen))
    if not told["base"]["fits"] and chosen["fits"]:
        expect(f"{name}: the chosen set is not empty", chosen["keys"])
    expect(f"{name}: where all steps together fit, something is chosen that fits", chosen["fits"] or not before["fits"])
    return [step["key"] for step in told["steps"]]


def main():
    program = Program(sys.argv[1], "--sanitized" in sys.argv)
    zoo = os.path.abspath(sys.argv[2])
    with open(os.path.join(zoo, "zoo.json"), encoding="utf-8") as file:
        models = json.load(file)["models"]
    with tempfile.TemporaryDirectory() as folder:
        met = set()
        for model in models:
            if "--all" in sys.argv or model["file"] in SAMPLE and not program.sanitized:
                met |= set(check_model(program, os.path.join(zoo, model["file"]), model["flags"], folder))
        gpt2 = os.path.join(zoo, "gpt2.onnx")
        met |= set(check_model(program, gpt2, ["--batch", "4", "--seq", "128", *WASTEFUL], folder))
        met |= set(check_model(program, gpt2, ["--batch", "4", "--seq", "64", "--alloc-conf", "max_split_size_mb:64"], folder))
        check_model(program, gpt2, ["--shape", "input_ids=4x128"], folder)
        check_model(program, gpt2, ["--batch", "16", "--seq", "128", "--task", "infer"], folder)
        for key in ("loss-item", "drop-outputs", "set-to-none", "zero-grad-after-step", "attention", "amp", "checkpoint",
                    "expandable-segments", "default-allocator", "fused", "for-loop", "adamw8bit", "adafactor", "bfloat16", "freeze"):
            expect(f"a model is advised {key}", key in met or program.sanitized)

        answer = program(["advise", gpt2, "--batch", "4", "--seq", "64", "--memory", "600MiB"], folder)
        expect("nothing fits: exit 1, and it says what comes nearest", answer.code == 1 and "nearest" in answer.out)
        answer = program(["advise", gpt2, "--batch", "1", "--seq", "64", "--gpu", "h200"], folder)
        expect("what fits is left as it is", answer.code == 0 and "as it is" in answer.out)
        answer = program(["advise", gpt2, "--batch", "1", "--seq", "64"], folder)
        expect("without a card it asks for one", answer.code == 0 and "--gpu" in answer.out)
        for form in ("csv", "md"):
            answer = program(["advise", gpt2, "--batch", "1", "--seq", "64", "--format", form], folder)
            expect(f"{form}: exit 0", answer.code == 0 and answer.out)
    sys.exit(1 if failures else 0)


main()
