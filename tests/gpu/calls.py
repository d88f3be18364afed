#!/usr/bin/env python3
"""calls.py HEADROOM RESULT.tsv [--seconds N]: how long the kernels of every call of a training step run, in forward
and in backward (needs torch with CUDA; nothing else on the card).

The eager programs of zoo models (`headroom inspect --stage program`), executed call by call and traced by
torch.profiler: in float32 at the zoo's batch and four times that, under bfloat16 autocast at twice. One line for each
kind of call: model, precision, batch (in units of the zoo's), how many, operator, whether its result is a view, flags
(causal, dropout), inputs (dtype:sizes:g for a gradient, c for contiguous), outputs, and the mean time of its kernels in
forward and in backward, in microseconds.
"""
import argparse
import collections
import contextlib
import json
import pathlib
import re
import subprocess
import time

import torch
from torch.profiler import ProfilerActivity, profile, record_function

ZOO = pathlib.Path(__file__).resolve().parents[2] / "models" / "zoo"
MODELS = ["gpt2", "bert_small", "vit_16", "resnet50", "llama_small", "unet", "mobilenet_v2", "swin_small", "convnext_tiny",
          "inception", "speech_encoder", "diffusion_unet"]
VALUE = re.compile(r"%[\w.:/\-]+")
UNSET = object()


def dtype_of(name):
    return getattr(torch, name)


class Program:
    """The text of an eager program, with random tensors for what it reads."""

    def __init__(self, text, half):
        self.tensors, self.calls = {}, []
        for line in text.splitlines():
            if line.startswith(("parameter", "buffer", "input")):
                self.declare(line, half)
            elif line.startswith("%"):
                self.calls.append(parsed(line))
            elif line.startswith("return"):
                self.result = VALUE.search(line).group(0)

    def declare(self, line, half):
        kind, name, sizes, dtype = re.match(r"(\w+) %?(\S+) \[(.*?)\] (\w+)", line).groups()
        sizes, dtype = [int(size) for size in sizes.split(",") if size.strip()], dtype_of(dtype)
        if dtype.is_floating_point:
            tensor = (torch.randn(sizes, device="cuda") * 0.02).to(half or dtype)
            if name.endswith("running_var"):
                tensor = tensor.abs() + 1
        elif "position" in name and len(sizes) == 2:
            tensor = torch.arange(sizes[1], device="cuda").expand(sizes).contiguous()
        else:
            tensor = torch.ones(sizes, device="cuda", dtype=dtype)
        self.tensors["%" + name] = tensor.requires_grad_(kind == "parameter" and tensor.is_floating_point())

    def run(self, noted=None):
        values = dict(self.tensors)
        for number, (results, operator, arguments, drops) in enumerate(self.calls):
            call, positional, named = bound(operator, arguments, values)
            with record_function(f"call{number}") if noted is not None else contextlib.nullcontext():
                made = call(*positional, **named)
            made = list(made) if isinstance(made, (list, tuple)) else [made]
            if noted is not None:
                noted.append(described(operator, positional, made))
            values.update(zip(results, made))
            for dropped in drops:
                values.pop(dropped, None)
        return values[self.result]


def parsed(line):
    results, rest = line.split(" = ", 1)
    operator, rest = rest.split("(", 1)
    depth, quote, end = 1, "", 0
    while depth:
        letter = rest[end]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        else:
            depth += (letter in "([") - (letter in ")]")
        end += 1
    drops = re.search(r"drops (.*)$", rest[end:])
    return results.split(", "), operator, rest[: end - 1], drops.group(1).split(", ") if drops else []


def bound(operator, arguments, values):
    """The ATen overload, its positional and its keyword-only arguments."""
    name, _, overload = operator.removeprefix("aten::").partition(".")
    call = getattr(getattr(torch.ops.aten, name), overload or "default")

    def value(match):
        name = match.group(0)
        of_dtype = name not in values and name.endswith(".dtype")
        return f"values[{name.removesuffix('.dtype')!r}].dtype" if of_dtype else f"values[{name!r}]"

    code = VALUE.sub(value, arguments)
    code = re.sub(r"\b(float(16|32|64)|bfloat16|int32|int64|bool)\b", r"torch.\1", code)
    code = re.sub(r"\binf\b", "float('inf')", code)
    given = eval(f"({code},)" if code else "()", {"values": values, "torch": torch, "_": UNSET})
    positional, named = [], {"device": "cuda"} if any(a.name == "device" for a in call._schema.arguments) else {}
    for argument, one in zip(call._schema.arguments, given):
        if argument.name in ("device", "layout", "pin_memory"):
            continue
        one = argument.default_value if one is UNSET else one
        if argument.kwarg_only:
            named[argument.name] = one
        else:
            positional.append(one)
    return call, positional, named


def described(operator, arguments, made):
    tensors = [t for a in arguments for t in (a if isinstance(a, (list, tuple)) else [a]) if torch.is_tensor(t)]
    made = [t for t in made if torch.is_tensor(t)]
    memory = {t.untyped_storage().data_ptr() for t in tensors}
    view = not operator.partition(".")[0].endswith("_") and any(t.untyped_storage().data_ptr() in memory for t in made)
    attention = operator.startswith("aten::scaled_dot_product_attention")
    flags = ["causal"] * (attention and len(arguments) > 5 and arguments[5]) + ["dropout"] * (attention and len(arguments) > 4 and arguments[4] > 0)
    return operator, "view" if view else "", ",".join(flags), " ".join(map(text_of, tensors)), " ".join(map(text_of, made))


def text_of(t):
    return f"{str(t.dtype).removeprefix('torch.')}:{'x'.join(map(str, t.shape))}:{'g' * t.requires_grad}{'c' * t.is_contiguous()}"


def loss_of(result, causal):
    if result.dim() < 2:
        return result.sum()
    if result.dim() == 4:
        return result.float().square().mean()
    rows = (result.float() if causal else result).flatten(0, -2)
    return torch.nn.functional.cross_entropy(rows, torch.zeros(len(rows), dtype=torch.long, device="cuda"))


def kernel_times(step):
    """Of one traced step: kinds of calls with how many and the sums of their kernels' times, both directions."""
    noted = []
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as traced:
        step(noted)
        torch.cuda.synchronize()
    forward, backward, call_of = collections.Counter(), collections.Counter(), {}

    def kernels(event):
        return sum(k.duration for k in event.kernels) + sum(map(kernels, event.cpu_children))

    def nodes(event, number):
        if event.sequence_nr >= 0:
            call_of.setdefault(event.sequence_nr, number)
        for child in event.cpu_children:
            nodes(child, number)

    events = traced.events()
    for event in events:
        if re.fullmatch(r"call\d+", event.name):
            number = int(event.name.removeprefix("call"))
            forward[number] += kernels(event)
            for child in event.cpu_children:
                nodes(child, number)
    for event in events:
        if event.name.startswith("autograd::engine::evaluate_function") and event.sequence_nr in call_of:
            backward[call_of[event.sequence_nr]] += kernels(event)
    kinds = collections.defaultdict(lambda: [0, 0.0, 0.0])
    for number, kind in enumerate(noted):
        for i, amount in enumerate((1, forward[number], backward[number])):
            kinds[kind][i] += amount
    return kinds


def measured(headroom, model, times, amp):
    flags = list(model["flags"])
    causal = "causal-lm" in flags
    for needless in ("--optimizer", "--loss"):
        if needless in flags:
            del flags[flags.index(needless): flags.index(needless) + 2]
    batch = flags.index("--batch") + 1
    flags[batch] = str(int(flags[batch]) * times)
    half = torch.bfloat16 if "bf16" in flags else None
    text = subprocess.run([headroom, "inspect", ZOO / model["file"], *flags, "--stage", "program"], capture_output=True, text=True, check=True).stdout
    program = Program(text, half)

    def step(noted=None):
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=amp):
            loss = loss_of(program.run(noted), causal)
        loss.backward()
        for tensor in program.tensors.values():
            tensor.grad = None

    for _ in range(2):
        step()
    torch.cuda.synchronize()
    return "amp-bf16" if amp else "bf16" if half else "fp32", kernel_times(step)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headroom")
    parser.add_argument("result")
    parser.add_argument("--seconds", type=float, default=300)
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    zoo = {m["name"]: m for m in json.loads((ZOO / "zoo.json").read_text())["models"] if (m["exporter"], m["mode"]) == ("dynamo", "train")}
    with open(options.result, "w") as out:
        for name in MODELS:
            for times, amp in ((1, False), (4, False), (2, True)):
                if time.monotonic() > end or (amp and "bf16" in zoo[name]["flags"]):
                    continue
                precision, kinds = measured(options.headroom, zoo[name], times, amp)
                for kind, (count, forward, backward) in kinds.items():
                    print(name, precision, times, count, *kind, f"{forward / count:.1f}", f"{backward / count:.1f}", sep="\t", file=out)
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
