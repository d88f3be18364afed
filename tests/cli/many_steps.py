"""Runs of many steps and what becomes of them: the snapshot replays to the same figures, a leak grows as it does in a
run, a card that is too small ends in PyTorch's words. Usage: many_steps.py PROGRAM ZOO [--sanitized]"""

import json
import os
import shutil
import sys
import tempfile

from program import Program


class Zoo:
    def __init__(self, program, models, folder):
        self.program, self.models, self.folder = program, os.path.abspath(models), folder

    def run(self, *arguments, code=0):
        answer = self.program(arguments, self.folder)
        assert answer.code == code and not list(self.program.problems(answer)), (arguments, answer.code, answer.err)
        return answer.out

    def estimate(self, model, *arguments, code=0):
        path = os.path.join(self.models, model)
        return json.loads(self.run("estimate", path, *arguments, "--format", "json", code=code))


def ends(result):
    """Allocated bytes after each step."""
    return [p["allocated_bytes"] for p in result["steps"] if p["phase"] == "zero_grad"]


def snapshots(zoo):
    for model, flags in (
        ("mlp.onnx", ["--batch", "16"]),
        ("gpt2.onnx", ["--batch", "2", "--seq", "64", "--outputs", "drop"]),
        ("gpt2.onnx", ["--batch", "2", "--seqs", "64,48,80", "--alloc-conf", "expandable_segments:True"]),
        ("resnet50.onnx", ["--batch", "2", "--task", "infer", "--alloc-conf", "max_split_size_mb:64"]),
    ):
        predicted = zoo.estimate(model, *flags, "--snapshot", "run.pickle")
        replayed = json.loads(zoo.run("replay", "run.pickle", "--check", "--format", "json"))
        for figure in ("allocated_bytes", "reserved_bytes"):
            assert replayed["peak"][figure] == predicted["peak"][figure], (model, figure)
            assert replayed["end"][figure] == predicted["steps"][-1][figure], (model, figure)
        assert replayed["check"]["equal"] and replayed["check"]["blocks"] == replayed["check"]["blocks_equal"] > 0
        with open(os.path.join(zoo.folder, "run.pickle"), "rb") as file:
            first = file.read()
        zoo.estimate(model, *flags, "--snapshot", "again.pickle")
        with open(os.path.join(zoo.folder, "again.pickle"), "rb") as file:
            assert file.read() == first, "other bytes the second time"
        assert b"aten::" in first and b"weights" in first
    refused = ["estimate", os.path.join(zoo.models, "mlp.onnx"), "--alloc-conf", "backend:cudaMallocAsync"]
    zoo.run(*refused, "--snapshot", "run.pickle", code=2)
    shutil.copy(os.path.join(zoo.models, "mlp.onnx"), zoo.folder)
    zoo.run("estimate", "mlp.onnx", "--snapshot", "mlp.onnx", code=2)


def leak(zoo):
    flags = ["--batch", "4", "--steps", "12"]
    steady = ends(zoo.estimate("mlp.onnx", *flags))
    kept = ends(zoo.estimate("mlp.onnx", *flags, "--leak", "loss"))
    assert len(kept) == 12 and steady[1] == steady[-1]
    # backward has released what the graph held: the loss, one block of 512 bytes, is what stays.
    assert [b - a for a, b in zip(kept[1:], kept[2:])] == [512] * 10
    zoo.estimate("mlp.onnx", *flags, "--leak", "loss", "--snapshot", "leak.pickle")
    sites = json.loads(zoo.run("replay", "leak.pickle", "--format", "json"))["leaks"]
    assert [(s["call_site"], s["count"]) for s in sites] == [("mlp.onnx aten::div.Tensor loss", 12)], sites
    table = zoo.run("estimate", os.path.join(zoo.models, "mlp.onnx"), *flags, "--leak", "loss")
    assert "12 steps" in table and "grows by 512 B a step" in table
    micro = ends(zoo.estimate("mlp.onnx", *flags, "--leak", "loss", "--accumulate", "3"))
    assert micro[-1] - micro[-2] == 3 * 512
    zoo.run("estimate", os.path.join(zoo.models, "mlp.onnx"), "--task", "infer", "--leak", "loss", code=2)


def cards(zoo):
    flags = ["gpt2.onnx", "--batch", "2", "--seq", "64"]
    free = zoo.estimate(*flags)
    assert "fits" not in free and "out_of_memory" not in free
    roomy = zoo.estimate(*flags, "--memory", "80GiB")
    assert roomy["fits"] and roomy["spare_bytes"] > 0 and roomy["peak"] == free["peak"]
    tight = zoo.estimate(*flags, "--memory", "1GiB", code=1)
    assert not tight["fits"] and tight["spare_bytes"] < 0
    assert tight["peak"] == free["peak"], "what it would have needed"
    assert tight["out_of_memory"]["text"].startswith("CUDA out of memory. Tried to allocate ")
    assert "total capacity of 1024.00 MiB" in tight["out_of_memory"]["text"]
    assert "out of memory in step" in zoo.run("estimate", os.path.join(zoo.models, flags[0]), *flags[1:], "--memory",
                                              "1GiB", code=1)
    pool = zoo.estimate(*flags, "--alloc-conf", "backend:cudaMallocAsync")
    bound = next(p for p in pool["margin"]["parts"] if p["code"] == "async-reserved")
    assert bound["reserved_bytes"] == int(0.03 * pool["peak"]["reserved_bytes"]) and bound["allocated_bytes"] == 0
    # A share of a card is the allocator's; without a card there is nothing to take a share of.
    share = ["--alloc-conf", "per_process_memory_fraction:0.01"]
    capped = zoo.estimate(*flags, "--memory", "80GiB", *share, code=1)
    assert "allowed" in capped["out_of_memory"]["text"]
    zoo.run("estimate", os.path.join(zoo.models, flags[0]), *flags[1:], *share, code=2)


def main():
    program = Program(sys.argv[1], sanitized="--sanitized" in sys.argv)
    with tempfile.TemporaryDirectory() as folder:
        zoo = Zoo(program, sys.argv[2], folder)
        for part in (snapshots, leak, cards):
            part(zoo)
            print(f"{part.__name__}: as it should be")


main()
