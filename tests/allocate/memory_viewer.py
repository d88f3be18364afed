"""memory_viewer.py WRITE_SNAPSHOT: a snapshot of ours loads with pickle and passes through torch.cuda._memory_viz."""
import pathlib
import pickle
import subprocess
import sys
import tempfile

from torch.cuda import _memory_viz

with tempfile.TemporaryDirectory() as folder:
    for conf in ("", "expandable_segments:True"):
        path = pathlib.Path(folder) / "snapshot.pickle"
        allocated, reserved = map(int, subprocess.check_output([sys.argv[1], conf, path], text=True).split())
        snapshot = pickle.loads(path.read_bytes())
        assert sum(s["allocated_size"] for s in snapshot["segments"]) == allocated
        assert sum(s["total_size"] for s in snapshot["segments"]) == reserved
        assert snapshot["device_traces"][0][-1]["action"] == "oom"
        for plot in (_memory_viz.trace_plot, _memory_viz.segment_plot):
            assert "<script" in plot(snapshot)
        assert "model.onnx" in _memory_viz.memory(snapshot, format_flamegraph=str)
        assert _memory_viz.compare(snapshot["segments"], snapshot["segments"], format_flamegraph=str) == ""
        assert f"{len(snapshot['device_traces'][0])} entries" in _memory_viz.trace(snapshot)
        print(repr(conf), "allocated", allocated, "reserved", reserved, len(snapshot["device_traces"][0]), "events")
