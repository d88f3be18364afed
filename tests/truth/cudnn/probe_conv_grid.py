#!/usr/bin/env python3
"""Measures workspaces of cuDNN's convolutions over a grid, with several processes on the card that is there.

    python3 probe_conv_grid.py LAYERS.json OUT.jsonl SECONDS PROCESSES [BATCH,BATCH,...]

LAYERS.json as in probe_cudnn.py. Its layers are measured at many batch sizes; between them come random convolutions of
the kinds that networks use, unless batch sizes are given. A transposed convolution is not measured for itself: cuDNN runs it as the input gradient of
the direct one. A line of OUT: [ci, co, [kh, kw], [sh, sw], [ph, pw], [dh, dw], groups, h, w, batch, dtype,
channels_last, forward, input gradient, weight gradient], the last three in bytes, null where the call failed. Needs
torch with CUDA.
"""

import json
import multiprocessing
import random
import sys
import time

DTYPES = ("float32", "bfloat16", "float16")
BATCHES = (1, 2, 4, 6, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256)
CHANNELS = (16, 24, 32, 40, 48, 64, 80, 96, 112, 128, 144, 160, 192, 224, 256, 288, 320, 384, 448, 480, 512, 576, 640,
            768, 896, 960, 1024, 1152, 1280, 1536, 2048)
MAPS = (1, 2, 4, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 512)
# kernel, stride, padding, dilation, and how often
GEOMETRIES = ((3, 1, 1, 1, 12), (3, 2, 1, 1, 6), (1, 1, 0, 1, 8), (1, 2, 0, 1, 2), (5, 1, 2, 1, 2), (5, 2, 2, 1, 2), (7, 1, 3, 1, 1),
              (7, 2, 3, 1, 1), (7, 4, 3, 1, 1), (2, 2, 0, 1, 3), (4, 2, 1, 1, 4), (4, 4, 0, 1, 2), (8, 8, 0, 1, 1),
              (14, 14, 0, 1, 1), (16, 16, 0, 1, 1), (3, 1, 2, 2, 1), (3, 1, 4, 4, 1), (3, 1, 0, 1, 2), (5, 1, 0, 1, 1),
              (3, 2, 0, 1, 1), (4, 1, 0, 1, 1))
# Bytes of the largest operand: beyond them a process could run out of memory, and cuDNN would silently take another kernel.
LIMIT = 5 << 28


def out_size(n, k, s, p, d):
    return (n + 2 * p - d * (k - 1) - 1) // s + 1


def affordable(task):
    ci, co, ks, st, pa, di, groups, h, w, batch, dtype, _ = task
    oh, ow = (out_size(*a) for a in zip((h, w), ks, st, pa, di))
    if oh < 1 or ow < 1:
        return False
    e = 4 if dtype == "float32" else 2
    work = 2 * batch * co * oh * ow * ci // groups * ks[0] * ks[1]
    return batch * ci * h * w * e <= LIMIT and batch * co * oh * ow * e <= LIMIT and work <= 3e12


def random_line_task(r):
    """A one-dimensional convolution: of height 1."""
    c = r.choice(CHANNELS)
    k = r.choice((1, 2, 3, 3, 3, 5, 7, 9, 10, 11, 15, 25, 31, 41))
    d = r.choice((1, 1, 1, 2, 4, 8, 16)) if k <= 3 else 1
    s = r.choice((1, 1, 1, 2, 2, 4, 5)) if d == 1 else 1
    p = r.choice((d * (k - 1) // 2, d * (k - 1) // 2, 0, d * (k - 1)))
    ci, co = r.choice(((c, c), (c, c), (c, 2 * c), (2 * c, c), (1, c), (80, c), (c, 1), (c, r.choice(CHANNELS))))
    w = r.choice((16, 32, 50, 64, 100, 128, 200, 250, 256, 300, 400, 500, 512, 800, 1000, 1024, 1500, 2048, 3000, 4096, 8000, 16000))
    batch = r.choice(BATCHES) if r.random() < 0.7 else r.randint(1, 64)
    return [ci, co, [1, k], [1, s], [0, p], [1, d], 1, 1, w, batch, r.choices(DTYPES, (5, 5, 2))[0], False]


def random_task(r):
    if r.random() < 0.12:
        return random_line_task(r)
    k, s, p, d, _ = r.choices(GEOMETRIES, [g[4] for g in GEOMETRIES])[0]
    c = r.choice(CHANNELS)
    groups = 1
    kind = r.random()
    if k == 1:
        ci, co = r.choice(((c, c), (c, 2 * c), (2 * c, c), (c, 4 * c), (4 * c, c), (6 * c, c), (c, r.choice(CHANNELS)), (c, r.choice((1, 2, 3, 4, 19, 21, 150)))))
    elif kind < 0.2:
        ci, co = r.choice((1, 3, 3, 4)), c
    elif kind < 0.25:
        ci, co = c, r.choice((1, 2, 3, 4))
    elif kind < 0.35 and k in (3, 5):
        groups = r.choice((2, 4, 8, 16, 32))
        ci = co = c * groups if c <= 64 else c - c % groups or groups
    else:
        ci, co = r.choice(((c, c), (c, c), (c, 2 * c), (2 * c, c), (c, r.choice(CHANNELS))))
    n = r.choice(MAPS)
    batch = r.choice(BATCHES) if r.random() < 0.7 else r.randint(1, 64)
    last = r.random() < 0.06
    return [ci, co, [k, k], [s, s], [p, p], [d, d], groups, n, n, batch, r.choices(DTYPES, (5, 5, 2))[0], last]


def direct(layer):
    """A layer as the convolution that cuDNN runs."""
    kind, ci, co, ks, st, pa, di, groups, h, w, last, _ = layer
    if kind == "Conv2d":
        return [ci, co, ks, st, pa, di, groups, h, w, last]
    sizes = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, k, s, p, d in zip((h, w), ks, st, pa, di)]
    return [co, ci, ks, st, pa, di, groups, *sizes, last]


def tasks(layers, batches):
    r = random.Random(20261129)
    planned = []
    for layer in layers:
        *rest, last = direct(layer)
        for dtype in DTYPES:
            if rest[6] == rest[0] > 1 and not last and dtype != "float16":
                continue  # PyTorch's own depthwise kernels
            for batch in (8, 16, 32, 64, 128) if dtype == "float16" and not batches else batches or BATCHES:
                planned.append([*rest, batch, dtype, bool(last)])
    r.shuffle(planned)
    for task in planned:
        if affordable(task):
            yield task
        if not batches and r.random() < 0.8:
            other = random_task(r)
            if affordable(other):
                yield other


def measure(index, processes, layers, batches, out, end):
    import torch

    torch.cuda.set_per_process_memory_fraction(0.9 / processes)
    dev = "cuda"

    def workspace(call, kept):
        torch._C._cuda_resetPeakMemoryStats(0)
        before = torch._C._cuda_memoryStats(0)["requested_bytes"]["all"]["current"]
        result = call()
        return torch._C._cuda_memoryStats(0)["requested_bytes"]["all"]["peak"] - before - kept, result

    out_op, back = torch.ops.aten.convolution.default, torch.ops.aten.convolution_backward.default
    done = failed = 0
    with open(out, "w") as f, torch.no_grad():
        for i, task in enumerate(tasks(layers, batches)):
            if i % processes != index:
                continue
            if time.time() > end:
                break
            ci, co, ks, st, pa, di, groups, h, w, batch, dtype, last = task
            dt = getattr(torch, dtype)
            fmt = torch.channels_last if last else torch.contiguous_format
            args = (st, pa, di, False, [0, 0], groups)
            found = [None, None, None]
            try:
                x = torch.empty((batch, ci, h, w), device=dev, dtype=dt, memory_format=fmt)
                weight = torch.empty((co, ci // groups, *ks), device=dev, dtype=dt, memory_format=fmt)
                oh, ow = (out_size(*a) for a in zip((h, w), ks, st, pa, di))
                e = x.element_size()
                found[0], y = workspace(lambda: out_op(x, weight, None, *args), batch * co * oh * ow * e)
                found[1], g = workspace(lambda: back(y, x, weight, None, *args, [True, False, False]), x.numel() * e)
                del g
                found[2], g = workspace(lambda: back(y, x, weight, None, *args, [False, True, False]), weight.numel() * e)
                del g
                done += 1
            except RuntimeError as error:  # no kernel, or no memory
                failed += 1
                if failed < 3:
                    print(task, repr(error)[:150], flush=True)
            x = y = weight = g = None
            f.write(json.dumps(task + found, separators=(",", ":")) + "\n")
    print("process", index, "measured", done, "failed", failed, flush=True)


def main():
    layers, out, seconds, processes = json.load(open(sys.argv[1])), sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
    batches = [int(n) for n in sys.argv[5].split(",")] if len(sys.argv) > 5 else None
    end = time.time() + seconds
    context = multiprocessing.get_context("spawn")
    parts = [f"{out}.{i}" for i in range(processes)]
    workers = [context.Process(target=measure, args=(i, processes, layers, batches, parts[i], end)) for i in range(processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    with open(out, "w") as f:
        for part in parts:
            with open(part) as lines:
                f.write(lines.read())


if __name__ == "__main__":
    main()
