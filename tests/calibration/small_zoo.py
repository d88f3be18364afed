"""The zoo's architectures at sizes that a CPU runs in a moment, exported with their weights."""

import argparse
import importlib
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "models"), str(ROOT / "models" / "zoo")]


def pixels(*shape):
    import torch

    return torch.randn(2, *shape)


def tokens(count, length):
    import torch

    return torch.randint(0, count, (2, length))


def part(module, name):
    return getattr(importlib.import_module(module), name)


def vgg16():
    """VGG-16's own classifier has 120 million weights: this one keeps its layers and is narrow."""
    from torch import nn

    model = part("vgg", "VGG")()
    model.classifier = nn.Sequential(
        nn.Linear(512 * 7 * 7, 32), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(32, 20)
    )
    return model


def dlrm():
    module = importlib.import_module("recommender")
    module.ROWS = (100,) * len(module.ROWS)
    return module.Recommender()


def gpt_lora():
    module = importlib.import_module("lora")
    model = module.GPT(vocabulary=61, width=32, heads=4, layers=2, positions=32)
    for block in model.h:
        block.attn.c_attn = module.LoRALinear(block.attn.c_attn)
    for name, parameter in model.named_parameters():
        parameter.requires_grad = "lora_" in name
    return model


def translator_axes():
    return part("translator", "translator")()[2]


def batch_only(inputs):
    return {name: {0: "batch"} for name in inputs}


def models():
    """name → (makes the module, makes the inputs, dynamic axes or None, loss)."""
    import torch

    return {
        "mlp": (lambda: part("mlp", "MLP")(16, 32, 10), lambda: {"x": pixels(16)}, None, "cross-entropy"),
        "vgg16": (vgg16, lambda: {"x": pixels(3, 224, 224)}, None, "cross-entropy"),
        "resnet50": (
            lambda: part("resnet", "ResNet")(part("resnet", "Bottleneck"), (1, 2, 1, 1), width=8, classes=10),
            lambda: {"x": pixels(3, 64, 64)},
            None,
            "cross-entropy",
        ),
        "se_resnet": (
            lambda: part("resnet", "ResNet")(part("resnet", "PreActivation"), (1, 1, 1, 1), width=8, classes=10),
            lambda: {"x": pixels(3, 64, 64)},
            None,
            "cross-entropy",
        ),
        "mobilenet_v2": (lambda: part("mobilenet", "MobileNet")(10), lambda: {"x": pixels(3, 64, 64)}, None, "cross-entropy"),
        "convnext_tiny": (
            lambda: part("convnext", "ConvNeXt")((1, 1, 2, 1), (16, 32, 48, 64), classes=10),
            lambda: {"x": pixels(3, 64, 64)},
            None,
            "cross-entropy",
        ),
        "inception": (lambda: part("inception", "InceptionNet")(10), lambda: {"x": pixels(3, 64, 64)}, None, "cross-entropy"),
        "unet": (lambda: part("unet", "UNet")((8, 16, 32, 64), 5), lambda: {"x": pixels(3, 64, 64)}, None, "cross-entropy"),
        "bert_small": (
            lambda: part("bert", "Bert")(61, 32, 4, 2, 32),
            lambda: {"input_ids": tokens(61, 16)},
            None,
            "cross-entropy",
        ),
        "gpt2": (
            lambda: part("gpt2", "GPT")(61, 32, 4, 2, 32),
            lambda: {"input_ids": tokens(61, 16)},
            None,
            "causal-lm",
        ),
        "translator": (
            lambda: part("translator", "Translator")(61, 32, 4, 2, 32),
            lambda: {
                "input_ids": tokens(61, 16),
                "attention_mask": torch.ones(2, 16, dtype=torch.bool),
                "decoder_input_ids": tokens(61, 12),
            },
            translator_axes,
            "cross-entropy",
        ),
        "llama_small": (
            lambda: part("llama", "Llama")(61, 64, 8, 2, 96, 2),
            lambda: {"input_ids": tokens(61, 16)},
            None,
            "causal-lm",
        ),
        "vit_16": (
            lambda: part("vit", "ViT")(32, 4, 2, 16, 64, 10),
            lambda: {"x": pixels(3, 64, 64)},
            None,
            "cross-entropy",
        ),
        "swin_small": (
            lambda: part("swin", "Swin")(16, (2, 2), (2, 4), 4, 64, 10),
            lambda: {"x": pixels(3, 64, 64)},
            None,
            "cross-entropy",
        ),
        "lstm_lm": (
            lambda: part("recurrent", "LSTMLanguageModel")(61, 32),
            lambda: {"input_ids": tokens(61, 16)},
            None,
            "cross-entropy",
        ),
        "gru_speech": (
            lambda: part("recurrent", "GRUClassifier")(16, 32, 2, 7),
            lambda: {"x": pixels(16, 40)},
            lambda: batch_only(["x"]),
            "cross-entropy",
        ),
        "moe": (
            lambda: part("moe", "MoE")(61, 32, 4, 2, 64, 4, 2, 32),
            lambda: {"input_ids": tokens(61, 16)},
            None,
            "causal-lm",
        ),
        "diffusion_unet": (
            lambda: part("diffusion", "DiffusionUNet")(4, 32, (1, 2), 24),
            lambda: {"sample": pixels(4, 16, 16), "timestep": torch.randint(0, 1000, (2,)), "text": pixels(5, 24)},
            lambda: batch_only(["sample", "timestep", "text"]),
            "mse",
        ),
        "speech_encoder": (
            lambda: part("speech", "SpeechEncoder")(16, 32, 4, 2, 30, 41),
            lambda: {"mel": pixels(16, 60)},
            None,
            "cross-entropy",
        ),
        "dlrm": (dlrm, lambda: {"dense": pixels(13), "sparse": tokens(100, 8)}, lambda: batch_only(["dense", "sparse"]), "mse"),
        "dcgan": (lambda: part("gan", "Generator")(16, 8), lambda: {"z": pixels(16)}, None, "mse"),
        "gpt_lora": (gpt_lora, lambda: {"input_ids": tokens(61, 16)}, None, "causal-lm"),
    }


ONLY_TS = {"lstm_lm", "gru_speech"}  # as models/zoo/make


def export(model, inputs, axes, mode, exporter, path):
    import export as exporter_module

    options = argparse.Namespace(
        exporter=exporter, mode=mode, weights="all", slim=False, optimize=False, opset=None
    )
    exporter_module.export(model, inputs, exporter_module.guess_axes(inputs) if axes is None else axes(), path, options)


def shape_flags(inputs):
    return [f"--shape={name}=" + "x".join(map(str, value.shape)) for name, value in inputs.items()]


def job_of(headroom, path, inputs, *flags):
    done = subprocess.run(
        [headroom, "inspect", str(path), "--stage", "job", *shape_flags(inputs), *flags],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise AssertionError(f"headroom inspect: {done.stderr.strip()}")
    return {**json.loads(done.stdout), "device": "cpu", "check": True}


def run(runner, job):
    """The runner's lines, by event."""
    done = subprocess.run([runner], input=json.dumps(job), capture_output=True, text=True, check=False)
    lines = {}
    for line in done.stdout.splitlines():
        line = json.loads(line)
        lines.setdefault(line["event"], []).append(line)
    if not lines.get("end"):
        raise AssertionError(f"headroom-runner ended with {done.returncode} and no answer: {done.stderr[-500:]}")
    return lines


NUMPY = {"F64": "float64", "F32": "float32", "F16": "float16", "I64": "int64", "I32": "int32", "I16": "int16",
         "I8": "int8", "U8": "uint8", "BOOL": "bool"}


def write_safetensors(path, arrays):
    names = {dtype: name for name, dtype in NUMPY.items()}
    header, data = {}, b""
    for name, array in arrays.items():
        raw = array.tobytes()
        header[name] = {"dtype": names[str(array.dtype)], "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def read_safetensors(path):
    import numpy

    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    data = raw[8 + length :]
    return {
        name: numpy.frombuffer(data[slice(*t["data_offsets"])], NUMPY[t["dtype"]]).reshape(t["shape"])
        for name, t in json.loads(raw[8 : 8 + length]).items()
    }
