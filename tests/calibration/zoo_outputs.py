#!/usr/bin/env python3
"""zoo_outputs.py HEADROOM RUNNER [NAME ...]: every architecture of the zoo, recovered and run by the runner on the CPU.

With the weights of an inference export it gives the outputs that ONNX Runtime gives for the file (relative tolerance
2e-4, absolute 2e-5, float32: other kernels add in another order); a training export trains two steps, and one as a
bfloat16 module, with finite losses and gradients; every intermediate value has the shape that binding says. A changed argument of one call makes that fail.
"""

import copy
import pathlib
import sys
import tempfile

import small_zoo


def values_of(model, path, inputs):
    """Parameters and buffers by the module's names and by the file's, constants of the file, and the inputs."""
    import onnx
    from onnx import numpy_helper

    arrays = {}
    graph = onnx.load(path).graph
    for tensor in graph.initializer:
        arrays[tensor.name] = numpy_helper.to_array(tensor)
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            arrays[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    arrays.update((name, value.detach().numpy()) for name, value in model.state_dict().items())
    arrays.update((name, value.numpy()) for name, value in inputs.items())
    return {name: a for name, a in arrays.items() if str(a.dtype) in small_zoo.NUMPY.values()}


def expected_outputs(path, inputs):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    given = {i.name: inputs[i.name].numpy() for i in session.get_inputs()}
    return dict(zip(names, session.run(names, given)))


def differences(job, runner, expected, scratch):
    """What the runner answers that is not as expected; [] when all is."""
    import numpy

    results = scratch / "results.safetensors"
    results.unlink(missing_ok=True)
    lines = small_zoo.run(runner, {**job, "results": str(results)})
    end = lines["end"][0]
    if end["outcome"] != "completed":
        return [f"{end['outcome']}: {end['message'].splitlines()[0]} (at {end['op']} {end['site']} {end['module']})"]
    wrong = [f"shape of {l['value']} ({l['op']}): bound {l['expected']}, run {l['got']}" for l in lines.get("shape", [])]
    got = small_zoo.read_safetensors(results)
    for name, value in expected.items():
        if name not in got:
            wrong.append(f"output {name} is missing")
        elif got[name].shape != value.shape or not numpy.allclose(got[name], value, rtol=2e-4, atol=2e-5):
            worst = f"by {abs(got[name] - value).max():.3g} of {abs(value).max():.3g}" if got[name].shape == value.shape else "shape"
            wrong.append(f"output {name} differs from ONNX Runtime's: {worst}")
    return wrong


def mutations(job):
    """Jobs with one argument of one call changed: the factor of a scale, an axis, a slice."""
    for i, call in enumerate(job["programs"][0]["calls"]):
        for k, argument in enumerate(call["args"]):
            if isinstance(argument, float):
                changed = argument * 2 + 1
            elif isinstance(argument, list) and len(argument) > 1 and argument != argument[::-1]:
                changed = argument[::-1]
            else:
                continue
            mutant = copy.deepcopy(job)
            mutant["programs"][0]["calls"][i]["args"][k] = changed
            yield mutant, f"{job['programs'][0]['operators'][call['op']]} argument {k}: {argument} → {changed}"


def check(name, headroom, runner, scratch):
    import torch

    make, make_inputs, axes, loss = small_zoo.models()[name]
    exporter = "ts" if name in small_zoo.ONLY_TS else "dynamo"
    torch.manual_seed(0)
    model, inputs = make(), make_inputs()
    with torch.no_grad():
        for key, value in model.named_buffers():  # a batch norm that does something
            if key.endswith(("running_mean", "running_var")):
                value.uniform_(0.5, 1.5)
    wrong = []

    path = scratch / f"{name}.eval.onnx"
    small_zoo.export(model, inputs, axes, "eval", exporter, path)
    job = small_zoo.job_of(headroom, path, inputs, "--task", "infer", "--steps", "1")
    job["values"] = str(scratch / "values.safetensors")
    small_zoo.write_safetensors(pathlib.Path(job["values"]), values_of(model, path, inputs))
    expected = expected_outputs(path, inputs)
    wrong += [f"inference: {w}" for w in differences(job, runner, expected, scratch)]
    if name == "gpt2" and not wrong:
        mutant, what = next(mutations(job))
        if not differences(mutant, runner, expected, scratch):
            wrong.append(f"a wrong argument goes unseen: {what}")

    path = scratch / f"{name}.train.onnx"
    small_zoo.export(model, inputs, axes, "train", exporter, path)
    for flags in (["--steps", "2", "--clip-grad"], ["--steps", "1", "--precision", "bf16"]):
        of = "training" if len(flags) == 3 else "training in bf16"
        lines = small_zoo.run(runner, small_zoo.job_of(headroom, path, inputs, "--loss", loss, *flags))
        end = lines["end"][0]
        if end["outcome"] != "completed":
            wrong.append(f"{of}: {end['message'].splitlines()[0]} (at {end['op']} {end['site']} {end['module']})")
            continue
        wrong += [f"{of}: shape of {l['value']} ({l['op']}): bound {l['expected']}, run {l['got']}" for l in lines.get("shape", [])]
        wrong += [f"{of}: loss {l['value']}" for l in lines.get("loss", []) if isinstance(l["value"], str)]
        wrong += [f"{of}: {l['not_finite']} gradients are not finite" for l in lines.get("gradients", []) if l["not_finite"]]
        if not all(l["tensors"] for l in lines["gradients"]):
            wrong.append(f"{of}: no gradients")
    return wrong


def main():
    headroom, runner, *names = sys.argv[1:]
    failed = 0
    for name in names or small_zoo.models():
        with tempfile.TemporaryDirectory() as scratch:
            try:
                wrong = check(name, headroom, runner, pathlib.Path(scratch))
            except AssertionError as error:
                wrong = [str(error)]
        print(f"{name}: " + ("ok" if not wrong else f"{len(wrong)} wrong"), flush=True)
        for line in wrong[:8]:
            print(f"  {line}", flush=True)
        failed += bool(wrong)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
