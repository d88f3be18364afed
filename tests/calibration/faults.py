#!/usr/bin/env python3
"""faults.py HEADROOM ZOO [RUNNER]: what verify says when a run goes wrong: one clear line and exit 5, or an answered row,
and no process left behind. Runners that fail in each way are scripts; RUNNER is a real one on a machine without a GPU.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

START = {"event": "start", "device": "NVIDIA H200", "torch": "2.11.0", "cuda": "13.0", "cudnn": "9.19.0", "driver": "580",
         "total_bytes": 150109880320, "context_bytes": 543162368, "others_bytes": 0, "sm_count": 132,
         "compute_capability": "9.0"}
PHASE = {"event": "phase", "step": 0, "phase": "forward", "allocated_bytes": 1, "allocated_peak_bytes": 1,
         "reserved_bytes": 1, "reserved_peak_bytes": 1, "seconds": 0.1}


class Case:
    def __init__(self, headroom, model, folder):
        self.headroom, self.model, self.folder = headroom, model, folder
        self.failed = 0

    def fake(self, script):
        """A runner that reads its job and then does what `script` says."""
        path = self.folder / "runner"
        path.write_text("#!/bin/sh\ncat > /dev/null\n" + script)
        path.chmod(0o755)
        return path

    def answers(self, *lines):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (self.folder / "answer").write_text(text)
        return f"cat {self.folder / 'answer'}\n"

    def command(self, *more):
        return [str(self.headroom), "verify", str(self.model), "--batch", "4", *more]

    def check(self, what, done, code, *said):
        text = done.stdout + done.stderr
        lines = [line for line in done.stderr.splitlines() if line and not line.startswith("  hint:")]
        wrong = [f"exit {done.returncode}, not {code}"] if done.returncode != code else []
        wrong += [f"does not say '{s}'" for s in said if s not in text]
        if code == 5 and len(lines) != 1:
            wrong.append(f"{len(lines)} lines of error, not one")
        print(f"{what}: " + ("; ".join(wrong) + f"\n  {text.strip()[:600]}" if wrong else "ok"))
        self.failed += bool(wrong)

    def run(self, what, runner, code, *said, more=()):
        done = subprocess.run(self.command("--runner", str(runner), *more), capture_output=True, text=True, check=False,
                              timeout=60)
        self.check(what, done, code, *said)

    def gone(self, what, pids):
        deadline = time.monotonic() + 5
        left = list(pids)
        while left and time.monotonic() < deadline:
            left = [p for p in left if os.path.exists(f"/proc/{p}") and "Z" not in state(p)]
            time.sleep(0.05)
        print(f"{what}: " + (f"processes left behind: {left}" if left else "ok"))
        self.failed += bool(left)


def state(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


def wait_for(path):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if path.exists() and path.read_text().count("\n") == 2:
            return [int(p) for p in path.read_text().split()]
        time.sleep(0.05)
    raise SystemExit("the hanging runner did not start")


def estimate(headroom, model):
    done = subprocess.run([str(headroom), "estimate", str(model), "--batch", "4", "--gpu", "h200", "--format", "json"],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["peak"]


def figures(peak, factor=1.0):
    phase = {**PHASE, "allocated_peak_bytes": int(peak["allocated_bytes"] * factor),
             "reserved_peak_bytes": int(peak["reserved_bytes"] * factor), "device_bytes": int(peak["device_bytes"] * factor)}
    return phase


def main():
    headroom, zoo = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        case = Case(headroom, zoo / "mlp.onnx", folder)
        end = {"event": "end", "outcome": "completed"}
        peak = estimate(headroom, case.model)

        case.run("a run as estimated", case.fake(case.answers(START, figures(peak), end)), 0, "within the margin", "exact")
        memory = {"event": "memory", "action": "alloc", "bytes": 4096, "address": 512, "step": 0, "phase": "forward",
                  "op": "aten::linear", "site": "node_linear", "module": "layers.0"}
        events = folder / "events.json"
        case.run("its events", case.fake(case.answers(START, figures(peak), memory, end)), 0, "the events part in the setup",
                 "+8388608 layers.0.weight", more=["--events", str(events)])
        told = json.loads(events.read_text())
        if told["measured"] != ["+4096 aten::linear node_linear layers.0"] or len(told["estimated"]) < 10:
            print(f"the events are {told}")
            case.failed += 1
        case.run("a run that needs more", case.fake(case.answers(START, figures(peak, 1.5), end)), 1, "outside the margin")
        oom = {**end, "outcome": "out-of-memory", "message": "CUDA out of memory. Tried to allocate 2.00 GiB.",
               "op": "aten::mm", "site": "node_linear", "module": "layers.0"}
        case.run("out of memory in the middle", case.fake(case.answers(START, PHASE, oom)), 1, "out of memory", "layers.0",
                 "did not say")

        case.run("no runner there", folder / "nothing", 5, "no runner there")
        alone = folder / "headroom"
        shutil.copy(headroom, alone)
        done = subprocess.run([str(alone), *case.command()[1:]], capture_output=True, text=True, check=False,
                              env={"PATH": str(folder / "empty")})
        case.check("no runner anywhere", done, 5, "headroom-runner is not here")
        broken = folder / "broken"
        broken.write_text("\x7fELF")
        broken.chmod(0o755)
        case.run("no program", broken, 5, "cannot be started")

        failed = {**end, "outcome": "failed"}
        case.run("no GPU", case.fake(case.answers({**failed, "message": "no GPU: no CUDA-capable device is detected"}) + "exit 5"),
                 5, "no CUDA-capable device")
        case.run("wrong driver", case.fake(case.answers({**failed, "message": "no GPU: CUDA driver version is insufficient for CUDA runtime version"}) + "exit 5"),
                 5, "driver version is insufficient")
        case.run("a library is missing", case.fake("echo 'libtorch.so: cannot open shared object file' >&2; exit 127\n"), 5,
                 "libtorch.so")
        case.run("killed", case.fake(case.answers(START, PHASE) + "kill -9 $$\n"), 5, "signal 9")
        case.run("garbage", case.fake("printf 'hello\\001 there\\n'\n"), 5, "no answer: 'hello")
        case.run("half an answer", case.fake(case.answers(START)), 5, "without an answer")
        case.run("wrong answers", case.fake(case.answers({"event": "phase", "step": "x"})), 5, "no answer")
        deaf = folder / "deaf"
        deaf.write_text("#!/bin/sh\nexec <&-\nexit 3\n")
        deaf.chmod(0o755)
        case.run("a runner that does not listen", deaf, 5, "status 3")

        pids = folder / "pids"
        hang = f"sleep 1000 & printf '%s\\n%s\\n' $$ $! > {pids}\nwait\n"
        case.run("a kernel that hangs", case.fake(case.answers(START) + hang), 5, "no answer in 1 s", more=["--time-limit", "1"])
        case.gone("nothing is left of it", wait_for(pids))
        for what, sent in (("Ctrl-C", signal.SIGINT), ("terminated", signal.SIGTERM), ("killed from outside", signal.SIGKILL)):
            pids.unlink()
            process = subprocess.Popen(case.command("--runner", str(case.fake(hang))), stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            runner = wait_for(pids)
            process.send_signal(sent)
            process.communicate(timeout=20)
            if process.returncode != -sent:
                print(f"{what}: ended with {process.returncode}")
                case.failed += 1
            # What the runner itself started dies with its group; of a SIGKILL only the runner hears.
            case.gone(what, runner if sent != signal.SIGKILL else runner[:1])
            for pid in runner:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

        suite = folder / "headroom.toml"
        suite.write_text(f'[scenario.one]\nmodel = "{case.model}"\nbatch = 4\n[scenario.two]\nmodel = "{case.model}"\nbatch = 4096\n')
        runner = case.fake(case.answers(START, figures(peak), end))
        done = subprocess.run([str(headroom), "verify", "--suite", str(suite), "--runner", str(runner)], capture_output=True,
                              text=True, check=False)
        case.check("a suite", done, 1, "one", "two", "1 of 2 within the margin")
        runner = case.fake("kill -9 $$\n")
        done = subprocess.run([str(headroom), "verify", "--suite", str(suite), "--runner", str(runner), "--format", "json"],
                              capture_output=True, text=True, check=False)
        case.check("a suite of runs that die", done, 1, '"outcome": "failed"', "signal 9")

        if len(sys.argv) > 3:
            case.run("the runner, without a GPU", sys.argv[3], 5, "headroom-runner", more=["--time-limit", "60"])
    sys.exit(1 if case.failed else 0)


if __name__ == "__main__":
    main()
