"""Allocator events of a training step of nn.LSTMCell, nn.GRUCell and nn.RNNCell, three time steps each: OUT=FOLDER
python cells.py on a card writes FOLDER/cells.json, {"lc.fp32": [[action, bytes, stack], ...], ...}."""
import json, os, torch
from torch import nn
class LC(nn.Module):
    def __init__(s): super().__init__(); s.c = nn.LSTMCell(96, 128); s.o = nn.Linear(128, 64)
    def forward(s, x):
        h = torch.zeros(x.size(0), 128, device=x.device); c = torch.zeros(x.size(0), 128, device=x.device)
        for t in range(3): h, c = s.c(x[:, t], (h, c))
        return s.o(h)
class One(nn.Module):
    def __init__(s, cell): super().__init__(); s.c = cell(96, 128); s.o = nn.Linear(128, 64)
    def forward(s, x):
        h = torch.zeros(x.size(0), 128, device=x.device)
        for t in range(3): h = s.c(x[:, t], h)
        return s.o(h)
def lc(): return LC(), {"x": torch.randn(256, 3, 96)}
def gc(): return One(nn.GRUCell), {"x": torch.randn(256, 3, 96)}
def rc(): return One(nn.RNNCell), {"x": torch.randn(256, 3, 96)}
if __name__ == "__main__":
    out = {}
    for name, f in (("lc", lc), ("gc", gc), ("rc", rc)):
        for mode in ("fp32", "amp"):
            m, i = f(); m = m.cuda(); x = i["x"].cuda(); opt = torch.optim.SGD(m.parameters(), lr=.1)
            def step():
                if mode == "amp":
                    with torch.autocast("cuda", torch.bfloat16): o = m(x); l = o.sum()
                else: o = m(x); l = o.sum()
                del o; l.backward(); del l; opt.step(); opt.zero_grad()
            step(); step()
            torch.cuda.memory._record_memory_history(max_entries=100000, context="all", stacks="python")
            step()
            snap = torch.cuda.memory._snapshot(); torch.cuda.memory._record_memory_history(enabled=None)
            out[name + "." + mode] = [[e["action"], e["size"], " / ".join(f"{q['name']}:{q['line']}" for q in e.get("frames", [])[:3])] for e in snap["device_traces"][0]]
    json.dump(out, open(os.path.join(os.environ["OUT"], "cells.json"), "w"))
