#!/usr/bin/env python3
"""Exports a PyTorch module to ONNX as headroom reads it best: the program whole, the weights left out."""

import argparse
import contextlib
import importlib
import importlib.util
import inspect
import logging
import os
import pathlib
import sys
import tempfile
import warnings

EPILOG = """\
SOURCE is package.module:function or path/to/file.py:function. The function takes no arguments and returns

    model                              with one --input for each input
    model, inputs                      inputs: a tuple, or a dict by argument name
    model, inputs, dynamic_axes        {argument: {0: "batch", 1: "sequence"}}

Without dynamic_axes the first dimension of every input is "batch", and the second one of every integer input of two
dimensions is "sequence" ("ARGUMENT_sequence" where its size differs from the first such input's).
--axes says otherwise for one input: a name for each dimension that may vary, - for one that may not.

A model that returns a cache (use_cache=True) or hidden states exports them as outputs, and headroom counts them as
kept: return what your training loop returns.

examples:
  models/export.py mymodels.py:gpt2 -o gpt2.onnx
  models/export.py torchvision.models:resnet50 --input x=2x3x224x224 -o resnet50.onnx
  models/export.py mymodels.py:detector --axes image=batch,-,height,width -o detector.onnx
  models/export.py mymodels.py:gpt2 --exporter ts --mode eval --weights edges -o gpt2.onnx
"""

LEFT_OUT = "weights-left-out.data"  # never written: headroom needs dims and dtype of a weight, not its bytes
MANY_ELEMENTS = {True: 16, False: 1024}  # of a floating-point tensor, of another one (shape arithmetic needs those)
EDGE = 64  # elements at each edge of a matrix that --weights edges keeps


class ExportError(Exception):
    """What is wrong with the user's input, with a hint; `code` is the exit status."""

    def __init__(self, message, code=3):
        super().__init__(message)
        self.code = code


def load_function(source):
    module_name, _, function_name = source.rpartition(":")
    if not module_name or not function_name:
        raise ExportError(f"'{source}' is not MODULE:FUNCTION, for example mymodels.py:gpt2", 2)
    sys.path.insert(0, os.getcwd())
    try:
        if module_name.endswith(".py"):
            path = pathlib.Path(module_name)
            if not path.is_file():
                raise ExportError(f"{path}: no such file")
            sys.path.insert(0, str(path.resolve().parent))
            spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
            module = importlib.util.module_from_spec(spec)
            sys.modules[path.stem] = module
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(module_name)
    except ImportError as error:
        raise ExportError(f"cannot import {module_name}: {error}") from error
    if not callable(getattr(module, function_name, None)):
        names = [name for name, value in vars(module).items() if inspect.isfunction(value) and name[0] != "_"]
        raise ExportError(f"{module_name} has no function '{function_name}'; it has: {', '.join(names) or 'none'}")
    return getattr(module, function_name)


def parse_input(text):
    """'x=2x3x224x224' or 'ids=2x64:int64' -> (name, tensor); integers are 0 or 1, valid for any embedding."""
    import torch

    name, _, description = text.partition("=")
    dims, _, dtype_name = description.partition(":")
    dtype = getattr(torch, dtype_name or "float32", None)
    if not name or not isinstance(dtype, torch.dtype) or not all(d.isdecimal() for d in dims.split("x")):
        raise ExportError(f"--input {text}: not NAME=2x3x224x224 or NAME=2x64:int64", 2)
    shape = [int(d) for d in dims.split("x")]
    return name, torch.randn(shape, dtype=dtype) if dtype.is_floating_point else torch.randint(0, 2, shape).to(dtype)


def take_apart(made, given_inputs):
    """What the user's function returned -> (model, inputs as dict by argument name, dynamic axes or None)."""
    import torch

    model, inputs, axes = (tuple(made) + (None, None))[:3] if isinstance(made, tuple) else (made, None, None)
    if not isinstance(model, torch.nn.Module):
        raise ExportError(
            f"the function returned {type(model).__name__}, not a torch.nn.Module (or a tuple that starts with one)"
        )
    if given_inputs:
        inputs = given_inputs
    if inputs is None:
        raise ExportError("no example inputs: return (model, inputs), or name each with --input x=2x3x224x224")
    signature = inspect.signature(model.forward)
    try:
        if isinstance(inputs, dict):
            bound = signature.bind(**inputs)
        else:
            bound = signature.bind(*(inputs if isinstance(inputs, (tuple, list)) else (inputs,)))
    except TypeError as error:
        raise ExportError(f"the inputs do not suit {type(model).__name__}.forward{signature}: {error}") from error
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL and bound.arguments.get(name):
            raise ExportError(f"forward(*{name}) has inputs without names: wrap the module in one that names them")
        if parameter.kind is parameter.VAR_KEYWORD:
            bound.arguments.update(bound.arguments.pop(name, {}))
    return model, dict(bound.arguments), axes


def parse_axes(text, inputs):
    name, _, names = text.partition("=")
    if name not in inputs:
        raise ExportError(f"--axes {text}: no input '{name}'; there is: {', '.join(inputs)}", 2)
    return name, {i: dim for i, dim in enumerate(names.split(",")) if dim not in ("-", "")}


def guess_axes(inputs):
    """Dynamic axes as --help describes them."""
    import torch

    axes, sequence = {}, None
    for name, value in inputs.items():
        if not isinstance(value, torch.Tensor) or value.dim() == 0:
            continue
        axes[name] = {0: "batch"}
        if value.dim() == 2 and not value.is_floating_point():
            sequence = sequence or value.shape[1]
            axes[name][1] = "sequence" if value.shape[1] == sequence else f"{name}_sequence"
    return axes


def check_axes(axes, inputs):
    for name, dims in axes.items():
        if name not in inputs:
            raise ExportError(f"dynamic axes of '{name}', which is no input; there is: {', '.join(inputs)}")
        for dim, dim_name in dims.items():
            if dim >= inputs[name].dim():
                raise ExportError(
                    f"dynamic axes: '{name}' has no dimension {dim} (its shape is {list(inputs[name].shape)})"
                )
            if inputs[name].shape[dim] < 2:
                raise ExportError(
                    f"dimension {dim} ({dim_name}) of example input '{name}' is {inputs[name].shape[dim]}: "
                    "exporters take 0 and 1 for constants; use at least 2"
                )


def move_off_initial_values(model):
    """Exporters merge equal weights, and a fresh model has many (zero biases, norms of ones)."""
    import torch

    values = dict(model.named_parameters())
    values.update(
        (name, b) for name, b in model.named_buffers() if name.rpartition(".")[2] in ("running_mean", "running_var")
    )
    with torch.no_grad():
        for value in values.values():
            if value.is_floating_point() and not value.is_meta:
                value.add_(torch.rand_like(value), alpha=1e-3)


def export_dynamo(model, inputs, axes, options, _):
    import torch

    shapes = {name: dict(axes[name]) if axes.get(name) else None for name in inputs}
    try:
        program = torch.onnx.export(
            model,
            (),
            kwargs=inputs,
            dynamic_shapes=shapes,
            dynamo=True,
            verbose=False,
            opset_version=options.opset,
            optimize=options.optimize,
        )
    except torch.onnx.errors.OnnxExporterError as error:
        reasons = [line.strip() for line in str(error.__cause__ or error).splitlines() if line.strip()]
        raise ExportError(
            "torch.export cannot capture the model: "
            + " ".join(reasons[:4])
            + "\nhint: an input dimension that the model fixes must not be dynamic (--axes); --exporter ts traces instead"
        ) from error
    return program.model


@contextlib.contextmanager
def taking_only(model, inputs, names):
    """The TorchScript exporter makes an input of every default that is a number: logits_to_keep = 0, the index of one
    position then. Within, the module's forward takes the tensors in `names` and nothing else."""
    forward, own = model.forward, model.__dict__.get("forward")
    others = {name: value for name, value in inputs.items() if name not in names}
    model.forward = lambda *tensors: forward(**dict(zip(names, tensors)), **others)
    try:
        yield
    finally:
        del model.forward
        if own:
            model.forward = own


def export_ts(model, inputs, axes, options, scratch):
    import onnx_ir
    import torch

    names = [name for name, value in inputs.items() if isinstance(value, torch.Tensor)]
    path = os.path.join(scratch, "model.onnx")
    training = torch.onnx.TrainingMode.TRAINING if options.mode == "train" else torch.onnx.TrainingMode.EVAL
    try:
        with taking_only(model, inputs, names):
            torch.onnx.export(
                model,
                tuple(inputs[name] for name in names),
                path,
                input_names=names,
                dynamic_axes=axes,
                dynamo=False,
                opset_version=options.opset or 17,
                training=training,
                do_constant_folding=options.optimize,
            )
    except Exception as error:  # a tracer runs the user's code: anything may come out
        reasons = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise ExportError(
            f"the TorchScript exporter failed: {' '.join(reasons[:2])}\nhint: try --exporter dynamo"
        ) from error
    return onnx_ir.load(path)  # maps the weights, so `scratch` must stay until the model has been written


def edges(rows, columns):
    """(first element, count) of the stretches of a matrix that tell whether two weights are tied: the start of the
    first and the middle row, and of the first and the middle column (one of the two may be stored transposed)."""
    for row in {0, rows // 2}:
        yield row * columns, min(columns, EDGE)
    for column in {0, columns // 2}:
        for row in range(min(rows, EDGE)):
            yield row * columns + column, 1


def leave_weights_out(exported, path, keep):
    """Replaces every large tensor by external data: in no file (keep = none) or in a sparse one (keep = edges)."""
    import numpy
    import onnx_ir

    location = LEFT_OUT if keep == "none" else path.name + ".data"
    data = None if keep == "none" else open(path.with_name(location), "wb")
    offset = 0

    def left_out(tensor):
        nonlocal offset
        if tensor.size <= MANY_ELEMENTS[tensor.dtype.is_floating_point()] or tensor.dtype == onnx_ir.DataType.STRING:
            return tensor
        if data:
            if len(tensor.shape) == 2 and tensor.dtype.bitwidth % 8 == 0:
                size = tensor.dtype.bitwidth // 8
                raw = numpy.ascontiguousarray(tensor.numpy()).reshape(-1).view(numpy.uint8)
                for start, count in edges(*tensor.shape):
                    data.seek(offset + start * size)
                    data.write(raw[start * size : (start + count) * size].tobytes())
            data.truncate(offset + tensor.nbytes)
        external = onnx_ir.ExternalTensor(
            location,
            offset,
            tensor.nbytes,
            tensor.dtype,
            shape=tensor.shape,
            name=tensor.name or "",
            base_dir=path.parent,
        )
        external.metadata_props.update(tensor.metadata_props)
        offset += -(-tensor.nbytes // 64) * 64
        return external

    for graph in exported.graphs():
        for value in graph.initializers.values():
            value.const_value = left_out(value.const_value)
    for node in exported.graph.all_nodes():
        for name, attribute in node.attributes.items():
            if attribute.type == onnx_ir.AttributeType.TENSOR:
                node.attributes[name] = onnx_ir.AttrTensor(name, left_out(attribute.value))
    if data:
        data.close()


def shorten_paths(exported):
    """Source lines tell which values a frame holds; where they lie on this disk is nobody's business."""
    import torch

    prefixes = [str(pathlib.Path(torch.__file__).parent.parent) + os.sep, os.getcwd() + os.sep]
    for node in exported.graph.all_nodes():
        for key, text in node.metadata_props.items():
            if key.endswith("stack_trace"):
                for prefix in prefixes:
                    text = text.replace(f'File "{prefix}', 'File "')
                node.metadata_props[key] = text


def slim(exported):
    """Leaves out what headroom does not read: inferred types (it infers them itself), metadata that is there twice."""
    for graph in exported.graphs():
        for node in graph:
            node.doc_string = None
            if node.op_type == "Constant":
                node.metadata_props.clear()
            node.metadata_props.pop("namespace", None)
            for value in node.outputs:
                if not value.is_graph_output():
                    value.shape, value.type = None, None
                value.metadata_props.clear()
        for value in graph.initializers.values():
            value.metadata_props.clear()


def export(model, inputs, axes, path, options):
    """Writes the ONNX file of `model` to `path`; returns the exported onnx_ir.Model."""
    import torch

    check_axes(axes, inputs)
    move_off_initial_values(model)
    model.train(options.mode == "train")
    capture = {"dynamo": export_dynamo, "ts": export_ts}[options.exporter]
    with tempfile.TemporaryDirectory(prefix="headroom-export-") as scratch:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporters, about themselves
            logging.getLogger("torch.onnx").setLevel(logging.ERROR)
            exported = capture(model, inputs, axes, options, scratch)
        for value in exported.graph.inputs:
            for dim, name in axes.get(value.name, {}).items():
                if isinstance(value.shape[dim], int):
                    raise ExportError(
                        f"the exporter fixed dimension {dim} ({name}) of input '{value.name}' to "
                        f"{value.shape[dim]}: the model allows no other; say so with --axes"
                    )
        if options.weights != "all":
            leave_weights_out(exported, path, options.weights)
        shorten_paths(exported)
        if options.slim:
            slim(exported)
        exported.producer_name, exported.producer_version = "pytorch", torch.__version__
        write(exported, path, options.weights)
    return exported


def write(exported, path, weights):
    """A file that is there is whole: it is written under another name first."""
    import onnx_ir

    partial = path.with_name(path.name + ".partial")
    try:
        onnx_ir.save(exported, partial, external_data=path.name + ".data" if weights == "all" else None)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("source", metavar="SOURCE", help="MODULE:FUNCTION that makes the model")
    parser.add_argument("-o", "--output", metavar="FILE", type=pathlib.Path, help="default: FUNCTION.onnx")
    parser.add_argument(
        "--exporter",
        choices=["dynamo", "ts"],
        default="dynamo",
        help="torch.export (default; it tells the exact ATen calls) or TorchScript",
    )
    parser.add_argument(
        "--mode",
        choices=["train", "eval"],
        default="train",
        help="train (default) keeps dropout and batch norm; an eval file has to be guessed back",
    )
    parser.add_argument(
        "--input", metavar="NAME=DIMS[:DTYPE]", action="append", default=[], help="an example input, x=2x3x224x224"
    )
    parser.add_argument(
        "--axes", metavar="INPUT=NAME,-,…", action="append", default=[], help="the dimensions of an input that may vary"
    )
    parser.add_argument(
        "--weights",
        choices=["none", "edges", "all"],
        default="none",
        help="none (default): dims and types only; edges: besides, a sparse FILE.data with the few hundred bytes "
        "of each matrix that tell tied weights apart in an eval file; all: FILE.data with all bytes",
    )
    parser.add_argument("--slim", action="store_true", help="a small file: without what headroom does not read")
    parser.add_argument(
        "--optimize", action="store_true", help="let the exporter optimise, as it does by default (merges, folds)"
    )
    parser.add_argument("--opset", type=int, metavar="N", help="default: the exporter's own (ts: 17)")
    options = parser.parse_args()

    try:
        try:
            import torch
            import onnx_ir, onnxscript  # noqa: F401  (the dynamo exporter needs both)
        except ImportError as error:
            raise ExportError(
                f"{error}; install with scripts/setup --models and run .venv/bin/python models/export.py", 5
            ) from error
        torch.manual_seed(0)
        function = load_function(options.source)
        path = options.output or pathlib.Path(function.__name__ + ".onnx")
        if not path.parent.is_dir():
            raise ExportError(f"{path}: the folder {path.parent} does not exist", 2)
        model, inputs, axes = take_apart(function(), dict(map(parse_input, options.input)))
        axes = {**guess_axes(inputs)} if axes is None else dict(axes)
        axes.update(parse_axes(text, inputs) for text in options.axes)
        exported = export(model, inputs, axes, path, options)
    except ExportError as error:
        print(f"export.py: {error}", file=sys.stderr)
        sys.exit(error.code)

    parameters = sum(p.numel() for p in model.parameters())
    described = ", ".join(f"{v.name}[{', '.join(str(d) for d in v.shape)}]" for v in exported.graph.inputs)
    print(
        f"{path}: {parameters:,} parameters, {sum(1 for _ in exported.graph):,} nodes, {path.stat().st_size / 1024:,.0f} KiB, {described}"
    )


if __name__ == "__main__":
    main()
