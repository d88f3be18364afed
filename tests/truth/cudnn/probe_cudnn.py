#!/usr/bin/env python3
"""Measures what cuDNN takes on the card that is there: workspaces of convolutions, batch norms, recurrent networks, and
the allocator's events of attention.

    python3 probe_cudnn.py LAYERS.json OUT.jsonl SECONDS [convs]

LAYERS.json: a list of [type, ci, co, [kh, kw], [sh, sw], [ph, pw], [dh, dw], groups, h, w, channels_last, [models]].
With "convs" only those are measured. Lines of OUT: kind conv (as scripts/conv-table reads them), rnn, batch_norm_last, sdpa. Needs torch with CUDA.
"""

import json
import sys
import time

import torch
import torch.nn.functional as F

LAYERS, OUT, SECONDS = json.load(open(sys.argv[1])), open(sys.argv[2], "w"), float(sys.argv[3])
START = time.time()
DEV = "cuda"
NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16"}


def emit(**record):
    OUT.write(json.dumps(record, separators=(",", ":")) + "\n")


def requested():
    return torch._C._cuda_memoryStats(0)["requested_bytes"]["all"]


def workspace(call, kept):
    """Bytes that the call takes beyond what it returns (`kept`), and its result."""
    torch._C._cuda_resetPeakMemoryStats(0)
    before = requested()["current"]
    result = call()
    return requested()["peak"] - before - kept, result


def events(run):
    """The allocator's events of a call: ["A", bytes], ["F", index of the alloc or -1, bytes]."""
    torch.cuda.memory._record_memory_history("all", context=None, max_entries=5000, clear_history=True)
    result = run()
    torch.cuda.synchronize()
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(None)
    index, found, count = {}, [], 0
    for e in trace:
        if e["action"] == "alloc":
            index[e["addr"]] = count
            count += 1
            found.append(["A", e["size"]])
        elif e["action"] == "free_completed":
            found.append(["F", index.pop(e["addr"], -1), e["size"]])
    return found, result


def conv(layer, batch, dtype):
    kind, ci, co, ks, st, pa, di, groups, h, w, last, _ = layer
    transposed = kind != "Conv2d"
    shape = (ci, co // groups, *ks) if transposed else (co, ci // groups, *ks)
    fmt = torch.channels_last if last else torch.contiguous_format
    x = torch.empty((batch, ci, h, w), device=DEV, dtype=dtype, memory_format=fmt)
    weight = torch.empty(shape, device=DEV, dtype=dtype, memory_format=fmt)
    args = (st, pa, di, transposed, [0, 0], groups)
    e = x.element_size()
    out = torch.ops.aten.convolution.default
    back = torch.ops.aten.convolution_backward.default
    y_bytes = batch * co * e
    for n, k, s, p, d in zip((h, w), ks, st, pa, di):
        y_bytes *= (n - 1) * s - 2 * p + d * (k - 1) + 1 if transposed else (n + 2 * p - d * (k - 1) - 1) // s + 1
    f, y = workspace(lambda: out(x, weight, None, *args), y_bytes)
    g, _ = workspace(lambda: back(y, x, weight, None, *args, [True, False, False]), x.numel() * e)
    v, _ = workspace(lambda: back(y, x, weight, None, *args, [False, True, False]), weight.numel() * e)

    def call(kept, extra, at):
        return [["A", kept]] + ([["A", extra], ["F", at + 1, extra]] if extra else [])

    forward = call(y_bytes, f, 0)
    backward = call(x.numel() * e, g, 0)
    backward += call(weight.numel() * e, v, 2 if g else 1)
    emit(kind="conv", ty=kind, N=batch, ci=ci, co=co, ks=ks, st=st, pa=pa, di=di, g=groups, bias=False, h=h, w=w,
         rg=True, dt=NAMES[dtype], cl=bool(last), fwd=forward, bwd=backward)


def convs():

    def native(l, dtype):
        return l[7] == l[1] > 1 and not l[10] and dtype != torch.float16

    big = ("unet", "diff", "vae", "sr")
    order = []
    for l in LAYERS:
        for dtype, batches in ((torch.float32, (32, 16, 64, 8, 4, 128)), (torch.bfloat16, (32, 64, 16, 8, 128, 4)),
                               (torch.float16, (32, 64, 16))):
            if native(l, dtype):
                continue
            if any(t.split("@")[0] in big or "@512" in t for t in l[11]):
                batches = (4, 8, 2, 16, 1) if dtype != torch.float16 else (4, 8)
            for rank, n in enumerate(batches):
                small = l[3] == [1, 1]
                popular = min((0 if t.split("@")[0] in ("resnet50", "resnet18", "mobilenet_v2", "efficientnet_b0",
                                                        "densenet121", "unet", "diff", "vgg16_bn", "1d") else 1)
                              for t in l[11])
                timm = min(1 if t.startswith("timm") else 0 for t in l[11])
                dt_rank = 1 if dtype == torch.float16 else 0
                order.append((rank * 2 + dt_rank * 3 + small * 1 + popular + 2 * timm, n, dtype, l))
    order.sort(key=lambda o: o[0])
    done = failed = 0
    for _, n, dtype, l in order:
        if time.time() - START > SECONDS:
            break
        if n * max(l[1] * l[8] * l[9], l[2] * l[8] * l[9] // max(1, l[4][0] * l[4][1])) * 4 > 3 << 30:
            continue
        try:
            conv(l, n, dtype)
            done += 1
        except Exception as e:  # no kernel, or no memory
            failed += 1
            if failed < 4:
                print("conv", l, n, dtype, repr(e)[:200])
    print("convolutions:", done, "of", len(order), "failed", failed, "seconds", time.time() - START)


def rnn(kind, dtype, batch, length, width, hidden, layers, both, dropout):
    net = getattr(torch.nn, kind)(width, hidden, layers, batch_first=False, bidirectional=both, dropout=dropout)
    net = net.to(DEV).to(dtype)
    x = torch.zeros(length, batch, width, device=DEV, dtype=dtype, requires_grad=True)
    y = net(x)[0]
    del y
    forward, out = events(lambda: net(x))
    g = torch.zeros_like(out[0])
    backward, _ = events(lambda: torch.autograd.grad(out[0], [x] + list(net.parameters()), g))
    del out
    with torch.no_grad():
        net.eval()
        inference, out = events(lambda: net(x))
    emit(kind="rnn", net=kind, dt=NAMES[dtype], B=batch, T=length, I=width, H=hidden, L=layers, both=both, p=dropout,
         fwd=forward, bwd=backward, infer=inference)


def rnns(limit):
    for kind, hiddens in (("LSTM", (64, 100, 128, 200, 256, 300, 512, 650, 1024)), ("GRU", (64, 128, 200, 256, 512, 650)),
                          ("RNN", (128, 256))):
        for hidden in hiddens:
            for dtype in (torch.float32, torch.bfloat16, torch.float16):
                for batch, length, layers, both, p in (
                        (32, 128, 1, False, 0.0), (32, 128, 2, False, 0.0), (32, 128, 3, False, 0.0),
                        (20, 35, 2, False, 0.5), (64, 64, 2, False, 0.0), (64, 128, 2, False, 0.2),
                        (32, 64, 1, True, 0.0), (32, 64, 2, True, 0.0), (8, 256, 2, False, 0.0)):
                    if time.time() - START > limit:
                        return
                    if dtype == torch.float16 and (layers == 3 or both):
                        continue
                    try:
                        rnn(kind, dtype, batch, length, hidden if layers != 3 else 2 * hidden, hidden, layers, both, p)
                    except Exception as e:
                        print(kind, hidden, dtype, repr(e)[:150])


def batch_norms(limit):
    for n, c, h in ((16, 64, 56), (32, 64, 112), (32, 64, 56), (32, 256, 56), (32, 128, 28), (32, 512, 28), (32, 256, 14),
                    (32, 1024, 14), (32, 512, 7), (32, 2048, 7), (64, 64, 112), (64, 256, 56), (64, 2048, 7), (16, 256, 56),
                    (8, 64, 112), (8, 2048, 7), (128, 512, 28), (32, 32, 112), (32, 96, 112), (32, 24, 56), (32, 960, 7),
                    (32, 1280, 7), (4, 64, 256), (32, 100, 20)):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            if time.time() - START > limit:
                return
            x = torch.randn(n, c, h, h, device=DEV, dtype=dtype).to(memory_format=torch.channels_last).requires_grad_()
            bn = torch.nn.BatchNorm2d(c, device=DEV)
            y = bn(x)
            g = torch.zeros_like(y)
            torch.autograd.grad(y, [x, *bn.parameters()], g)
            del y
            forward, y = events(lambda: bn(x))
            backward, _ = events(lambda: torch.autograd.grad(y, [x, *bn.parameters()], g))
            del y
            bn.eval()
            evaluation, _ = events(lambda: bn(x))
            emit(kind="batch_norm_last", N=n, C=c, H=h, dt=NAMES[dtype], fwd=forward, bwd=backward, eval=evaluation)


def attention(limit):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backends = {"auto": None, "flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION,
                "cudnn": SDPBackend.CUDNN_ATTENTION, "math": SDPBackend.MATH}
    for name, backend in backends.items():
        for dtype in (torch.bfloat16, torch.float32):
            for b, h, hk, s, sk, d in ((2, 8, 8, 512, 512, 256), (2, 8, 8, 512, 512, 192), (2, 8, 8, 512, 512, 160),
                                       (2, 8, 2, 512, 512, 256), (2, 8, 2, 512, 512, 128), (2, 8, 8, 512, 512, 64),
                                       (2, 8, 8, 512, 512, 72), (2, 8, 8, 500, 500, 36), (2, 8, 8, 1, 512, 64),
                                       (2, 8, 8, 300, 200, 64), (2, 4, 4, 4096, 4096, 40), (2, 5, 5, 4096, 77, 64),
                                       (2, 8, 8, 1024, 1024, 96), (1, 8, 8, 64, 4096, 128)):
                for case in ("plain", "causal", "drop", "boolmask", "rowmask"):
                    if time.time() - START > limit:
                        return
                    if name != "auto" and case == "rowmask":
                        continue
                    q, k, v = (torch.randn(b, n, m, d, device=DEV, dtype=dtype).transpose(1, 2).requires_grad_()
                               for n, m in ((s, h), (sk, hk), (sk, hk)))
                    mask = {"boolmask": lambda: torch.ones(b, 1, s, sk, device=DEV, dtype=torch.bool),
                            "rowmask": lambda: torch.ones(b, 1, 1, sk, device=DEV, dtype=torch.bool)}.get(case, lambda: None)()

                    def call():
                        return F.scaled_dot_product_attention(q, k, v, mask, dropout_p=0.1 if case == "drop" else 0.0,
                                                              is_causal=case == "causal", enable_gqa=hk != h)

                    try:
                        if backend is None:
                            out = call()
                            g = torch.zeros_like(out)
                            torch.autograd.grad(out, [q, k, v], g)
                            node = out.grad_fn.name()
                            del out
                            forward, out = events(call)
                        else:
                            with sdpa_kernel(backend):
                                out = call()
                                g = torch.zeros_like(out)
                                torch.autograd.grad(out, [q, k, v], g)
                                node = out.grad_fn.name()
                                del out
                                forward, out = events(call)
                        backward, _ = events(lambda: torch.autograd.grad(out, [q, k, v], g))
                        strides = list(out.stride())
                        del out
                        emit(kind="sdpa", backend=name, case=case, B=b, H=h, Hk=hk, S=s, Sk=sk, D=d, dt=NAMES[dtype],
                             node=node, out=strides, fwd=forward, bwd=backward)
                    except RuntimeError as e:
                        emit(kind="sdpa", backend=name, case=case, B=b, H=h, Hk=hk, S=s, Sk=sk, D=d, dt=NAMES[dtype],
                             error=str(e)[:60])


def main():
    a = torch.randn(64, 64, device=DEV, requires_grad=True)
    for dtype in NAMES:
        b = a.to(dtype)
        ((b @ b).sum() + F.linear(b, b, b[0]).sum()).backward()
    emit(kind="env", torch=torch.__version__, cudnn=torch.backends.cudnn.version(), gpu=torch.cuda.get_device_name())
    before = requested()["current"]
    net = torch.nn.LSTM(8, 8, 2, dropout=0.5).to(DEV)
    with_net = requested()["current"]
    y = net(torch.zeros(2, 2, 8, device=DEV))
    del y
    emit(kind="dropout_state", bytes=requested()["current"] - with_net, net=with_net - before)
    OUT.flush()
    if sys.argv[4:] != ["convs"]:
        attention(0.14 * SECONDS)
        print("attention", time.time() - START)
        batch_norms(0.19 * SECONDS)
        rnns(0.36 * SECONDS)
        print("rnn", time.time() - START)
    OUT.flush()
    with torch.no_grad():
        convs()
    OUT.close()


main()
