"""The snapshot of an estimate loads with pickle and passes through PyTorch's own viewer, module paths and categories
with it. Usage: memory_viewer.py PROGRAM ZOO [--sanitized]"""

import os
import pickle
import sys
import tempfile

from program import Program
from torch.cuda import _memory_viz


def snapshot_of(program, zoo, folder, model, flags):
    path = os.path.join(folder, "run.pickle")
    answer = program(["estimate", os.path.join(os.path.abspath(zoo), model), *flags, "--snapshot", path], folder)
    assert answer.code == 0, answer.err
    with open(path, "rb") as file:
        return pickle.load(file)


def main():
    program = Program(sys.argv[1], "--sanitized" in sys.argv)
    with tempfile.TemporaryDirectory() as folder:
        short, long = (snapshot_of(program, sys.argv[2], folder, "gpt2.onnx", ["--batch", "2", "--seq", length])
                       for length in ("48", "96"))
    events = long["device_traces"][0]
    assert {"weights", "activations", "gradients", "optimizer_state", "unknown"} <= {e["category"] for e in events}
    frames = {f["name"] for e in events for f in e["frames"]}
    assert any(name.startswith("aten::") for name in frames) and "backward" in frames
    assert any(name.startswith("h.0.") for name in frames), sorted(frames)[:40]
    for plot in (_memory_viz.trace_plot, _memory_viz.segment_plot):
        assert "<script" in plot(long)
    assert "h.0.mlp.c_fc" in _memory_viz.memory(long, format_flamegraph=str)
    assert _memory_viz.compare(long["segments"], long["segments"], format_flamegraph=str) == ""
    assert _memory_viz.compare(short["segments"], long["segments"], format_flamegraph=str) != ""
    assert f"{len(events)} entries" in _memory_viz.trace(long)


main()
