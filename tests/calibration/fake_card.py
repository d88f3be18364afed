#!/usr/bin/env python3
"""A headroom-runner without PyTorch: a card whose convolutions take what a formula says, for tests of calibration."""

import json
import os
import sys
import time

CONTEXT, CUBLAS, CUBLASLT = 900_000_000, 4_000_000, 2_000_000


def line(**fields):
    print(json.dumps(fields), flush=True)


def workspaces(probe):
    """Forward: input, output and weight; input gradient: nothing; weight gradient: the input and a bit."""
    ci, co, kernel, stride, padding, dilation, groups, size, batch, dtype, _ = probe
    element, multiple = (4, 4) if dtype == "float32" else (2, 8)
    out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(size, kernel, stride, padding, dilation)]
    ci, co = (-(-c // groups // multiple) * multiple * groups for c in (ci, co))
    x, y = element * batch * ci * size[0] * size[1], element * batch * co * out[0] * out[1]
    return [x + y + element * ci // groups * co * kernel[0] * kernel[1], 0, x + 16]


def main():
    job = json.load(sys.stdin)
    line(event="start", device=os.environ.get("FAKE_CARD", "NVIDIA Imaginary 1"), torch="2.11.0", cuda="13.0", cudnn="9.19.0",
         driver="600.1", total_bytes=32 << 30, context_bytes=500_000_000, others_bytes=0, sm_count=77, compute_capability="8.6")
    end = time.monotonic() + job["seconds"]
    for i, probe in enumerate(job.get("convolutions", [])):
        if time.monotonic() > end:
            break
        if str(i) == os.environ.get("FAKE_CRASH"):
            os.kill(os.getpid(), 9)
        line(event="convolution", index=i, workspaces=workspaces(probe))
        time.sleep(float(os.environ.get("FAKE_SECONDS", "0.0005")))
    if job["history"]:
        for phase, op, size, address in (("forward", "aten::linear", CUBLAS, 4), ("forward", "aten::linear", CUBLASLT, 1),
                                         ("forward", "aten::linear", 5000, 2),
                                         ("backward", "AddmmBackward0", CUBLAS, 3)):
            line(event="memory", action="alloc", bytes=size, address=address, step=0, phase=phase, op=op, site="", module="")
        line(event="memory", action="free", bytes=5000, address=2, step=0, phase="backward", op="", site="", module="")
    if job.get("programs"):
        line(event="phase", step=0, phase="forward", allocated_bytes=1 << 20, allocated_peak_bytes=1 << 20,
             reserved_bytes=2 << 20, reserved_peak_bytes=2 << 20, device_bytes=(2 << 20) + CONTEXT, seconds=0.1)
    line(event="end", outcome="completed")


if __name__ == "__main__":
    main()
