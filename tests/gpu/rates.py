#!/usr/bin/env python3
"""rates.py RESULT.json: what a card reaches in eager PyTorch: operations a second of products, convolutions and
attention by dtype, bytes a second of calls that only move, and the shortest kernel (needs torch with CUDA).

Forward alone and backward alone, for shapes of ordinary networks; the fastest of five rounds of twenty
calls, timed with events.
"""
import json
import sys

import torch
import torch.nn.functional as F


def seconds(call, repeats=20):
    for _ in range(3):
        call()
    best = float("inf")
    for _ in range(5):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(repeats):
            call()
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end) / 1e3 / repeats)
    return best


def both(make, flops, more=2):
    """Rates of forward and of backward, which has `more` times the operations."""
    out, leaves = make()
    grad = torch.randn_like(out)
    forward = seconds(make)
    backward = seconds(lambda: torch.autograd.grad(out, leaves, grad, retain_graph=True))
    return flops / forward, more * flops / backward


def linear(rows, width, out, dtype):
    x, w = torch.randn(rows, width, device="cuda", dtype=dtype, requires_grad=True), torch.randn(out, width, device="cuda", dtype=dtype, requires_grad=True)
    return both(lambda: (F.linear(x, w), (x, w)), 2 * rows * width * out)


def conv(batch, channels, out, side, kernel, dtype, groups=1, order=torch.contiguous_format):
    x = torch.randn(batch, channels, side, side, device="cuda", dtype=dtype).to(memory_format=order).requires_grad_()
    w = torch.randn(out, channels // groups, kernel, kernel, device="cuda", dtype=dtype, requires_grad=True)
    return both(lambda: (F.conv2d(x, w, padding=kernel // 2, groups=groups), (x, w)), 2 * batch * out * side * side * channels // groups * kernel * kernel)


def attention(batch, heads, length, width, dtype, causal):
    q, k, v = (torch.randn(batch, heads, length, width, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3))
    return both(lambda: (F.scaled_dot_product_attention(q, k, v, is_causal=causal), (q, k, v)),
                4 * batch * heads * length * length * width, 2.5)


def movers(dtype):
    """Calls that only move: name, what makes the result and its leaves, bytes that forward reads and writes;
    backward is taken to move twice as much."""
    def tensor(*shape):
        return torch.randn(*shape, device="cuda", dtype=dtype, requires_grad=True)

    size = dtype.itemsize
    for shape in ((8192, 4096), (32, 56, 56, 96), (32, 197, 768), (8, 512, 3072)):
        x, y, w, b = tensor(*shape), tensor(*shape), tensor(shape[-1]), tensor(shape[-1])
        n = x.numel()
        yield "add", lambda: (x + y, (x, y)), 3 * n * size
        yield "mul", lambda: (x * y, (x, y)), 3 * n * size
        yield "scale", lambda: (x * w, (x, w)), 2 * n * size
        yield "gelu", lambda: (F.gelu(x), (x,)), 2 * n * size
        yield "silu", lambda: (F.silu(x), (x,)), 2 * n * size
        yield "layer_norm", lambda: (F.layer_norm(x, (shape[-1],), w, b), (x, w, b)), 2 * n * size
        yield "dropout", lambda: (F.dropout(x, 0.1), (x,)), 2 * n * size + n
        yield "softmax", lambda: (x.softmax(-1), (x,)), 2 * n * size
        yield "permute", lambda: (x.transpose(-1, -2).contiguous(), (x,)), 2 * n * size
        yield "cat", lambda: (torch.cat((x, y), -1), (x, y)), 4 * n * size
    for shape in ((64, 256, 56, 56), (64, 64, 112, 112), (64, 96, 56, 56), (64, 576, 14, 14)):
        image = tensor(*shape)
        w, b = (torch.randn(shape[1], device="cuda", requires_grad=True) for _ in range(2))
        n = image.numel()
        yield "batch_norm", lambda: (F.batch_norm(image, None, None, w, b, True), (image, w, b)), 2 * n * size
        yield "relu", lambda: (F.relu(image), (image,)), 2 * n * size
        yield "hardswish", lambda: (F.hardswish(image), (image,)), 2 * n * size
        yield "max_pool", lambda: (F.max_pool2d(image, 2), (image,)), 1.25 * n * size + 2 * n
        yield "mean", lambda: (image.mean((2, 3)), (image,)), n * size


def main():
    found = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "products": [], "convolutions": [], "depthwise": [], "attention": [], "bytes": []}
    for dtype in (torch.float32, torch.bfloat16):
        name = str(dtype).split(".")[1]
        for rows, width, out in ((4096, 768, 768), (4096, 768, 3072), (4096, 3072, 768), (8192, 512, 2048), (4096, 4096, 4096), (4096, 768, 50257),
                                 (6304, 768, 3072), (25088, 384, 1536), (2048, 1024, 4096)):
            found["products"].append({"dtype": name, "shape": [rows, width, out], "rates": linear(rows, width, out, dtype)})
        for of in ((64, 64, 64, 56, 3), (64, 256, 64, 56, 1), (64, 64, 256, 56, 1), (64, 128, 128, 28, 3), (64, 256, 256, 14, 3), (64, 512, 512, 7, 3),
                   (64, 1024, 256, 14, 1), (8, 64, 64, 256, 3), (8, 128, 128, 128, 3), (8, 512, 512, 32, 3), (64, 96, 24, 56, 1), (64, 32, 192, 28, 1)):
            found["convolutions"].append({"dtype": name, "shape": of, "rates": conv(*of, dtype)})
        for of in ((64, 144, 144, 56, 3), (64, 192, 192, 28, 3), (64, 576, 576, 14, 3), (32, 96, 96, 56, 7), (32, 384, 384, 14, 7)):
            for order in (torch.contiguous_format, torch.channels_last):
                found["depthwise"].append({"dtype": name, "shape": of, "order": str(order).split(".")[1],
                                           "rates": conv(*of, dtype, groups=of[1], order=order)})
        for batch, heads, length, width in ((8, 12, 512, 64), (32, 12, 197, 64), (32, 8, 256, 64), (4, 32, 1024, 64), (4, 16, 2048, 128)):
            for causal in (False, True):
                found["attention"].append({"dtype": name, "shape": [batch, heads, length, width], "causal": causal, "rates": attention(batch, heads, length, width, dtype, causal)})
        for call, make, amount in movers(dtype):
            found["bytes"].append({"dtype": name, "call": call, "shape": list(make()[1][0].shape), "rates": both(make, amount)})
    tiny = torch.randn(64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(200):
            tiny.mul_(1.0)
    found["shortest_kernel_seconds"] = seconds(graph.replay, 5) / 200
    found["call_seconds"] = seconds(lambda: tiny.mul_(1.0), 2000)
    json.dump(found, open(sys.argv[1], "w"), indent=1)


if __name__ == "__main__":
    main()
