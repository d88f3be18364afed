"""Runs a recovered Program, as `headroom inspect --stage job` prints it, on CPU PyTorch."""

import json
import subprocess

import torch

FORMATS = {
    "contiguous_format": torch.contiguous_format,
    "preserve_format": torch.preserve_format,
    "channels_last": torch.channels_last,
    "channels_last_3d": torch.channels_last_3d,
    "strided": torch.strided,
}
NUMBER_TYPES = {bool: torch.bool, int: torch.int64, float: torch.float32}
TAKE_NUMBERS = {"add", "sub", "mul", "div"}  # a Python number stands for a tensor of theirs


class CannotRun(Exception):
    """The estimator refuses the file, or PyTorch the program."""


def recovered(headroom, path, shapes):
    """The Program of the ONNX file at `path`, each input with its shape of `shapes`."""
    command = [headroom, "inspect", str(path), "--stage", "job"]
    for name, shape in shapes.items():
        command += ["--shape", f"{name}={'x'.join(map(str, shape)) or '1'}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise CannotRun(done.stderr.strip())
    return json.loads(done.stdout)["programs"][0]


class Runner:
    """`values`: tensors by name of parameter, buffer or input; what is not there is made (the numbers do not matter)."""

    def __init__(self, program, values):
        self.program = program
        self.held = {}
        for kind in ("parameters", "inputs"):
            for p in program.get(kind, []):
                self.held[p["slot"]] = self.tensor(p, values)
        self.names = [
            (self.held[p["slot"]], p["name"] if kind == "parameters" else "input " + p["name"])
            for kind in ("parameters", "inputs")
            for p in program.get(kind, [])
        ]

    def tensor(self, described, values):
        shape, dtype = described["dims"], getattr(torch, described["dtype"])
        given = values.get(described["name"])
        if given is not None and list(given.shape) == shape and given.dtype == dtype:
            value = given.detach().clone()
        elif dtype.is_floating_point:
            value = torch.rand(shape, dtype=dtype)
        else:
            value = torch.zeros(shape, dtype=dtype)
        if described.get("trainable") and not described.get("buffer") and dtype.is_floating_point:
            value.requires_grad_()
        return value

    def forward(self):
        slots = dict(self.held)
        for call in self.program.get("calls", []):
            self.call(call, slots)
        return [slots[o["slot"]] for o in self.program["outputs"] if o["slot"] in slots]

    def call(self, call, slots):
        name = self.program["operators"][call["op"]]
        packet, _, overload = name.removeprefix("aten::").partition(".")
        function = getattr(getattr(torch.ops.aten, packet), overload or "default")
        positional, keyword = [], {}
        for argument, given in zip(function._schema.arguments, call["args"]):
            if given == {}:
                if not argument.has_default_value():
                    raise CannotRun(f"{name} is called without its argument {argument.name}")
                value = argument.default_value
            else:
                wanted = "number" if packet.rstrip("_") in TAKE_NUMBERS else str(argument.type)
                value = self.value(given, slots, wanted)
            if argument.kwarg_only:
                keyword[argument.name] = value
            else:
                positional.append(value)
        try:
            results = function(*positional, **keyword)
        except Exception as error:
            raise CannotRun(f"{name} of {call.get('site', '?')}: {str(error).splitlines()[0]}") from error
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        flat = [t for r in results for t in (r if isinstance(r, (tuple, list)) else [r])]
        for slot, tensor in zip(call["out"], flat):
            if slot >= 0:
                slots[slot] = tensor
        for slot in call.get("drop", []):
            slots.pop(slot, None)

    def value(self, given, slots, wanted):
        if isinstance(given, str):
            return FORMATS.get(given, given) if wanted not in ("str", "Optional[str]") else given
        if isinstance(given, (int, float)) and wanted in ("Tensor", "Optional[Tensor]"):
            return torch.scalar_tensor(given, dtype=NUMBER_TYPES[type(given)])
        if not isinstance(given, dict):
            return given
        kind, what = next(iter(given.items()))
        if kind == "slot":
            return slots[what] if what >= 0 else None
        if kind == "slots":
            return [slots[s] if s >= 0 else None for s in what]
        if kind == "dtype":
            return getattr(torch, what)
        if kind == "dtype_of":
            return slots[what].dtype
        return float(what)
