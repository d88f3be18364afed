#!/usr/bin/env python3
"""profiles.py HEADROOM ZOO [RUNNER]: calibration on a card that is a script, and what --profile makes of it; with a real
runner also on the CPU, where the figures mean nothing but every call is made.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import fake_card as card

FAKE = pathlib.Path(__file__).resolve().parent / "fake_card.py"


def main():
    headroom, zoo = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    failed = 0

    def say(what, wrong):
        nonlocal failed
        print(f"{what}: {wrong or 'ok'}", flush=True)
        failed += bool(wrong)

    def run(*arguments, **environment):
        return subprocess.run([str(headroom), *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120,
                              env={**os.environ, **environment})

    def estimate(model, *arguments):
        done = run("estimate", zoo / model, "--format", "json", *arguments)
        return json.loads(done.stdout) if done.returncode in (0, 1) else done.stderr

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        profile = folder / "card.json"
        calibrate = ("calibrate", "-o", profile, "--runner", FAKE)

        done = run(*calibrate, "--budget", "10s", zoo / "se_resnet.onnx", "--batch", "8")
        made = json.loads(profile.read_text()) if profile.exists() else {}
        wrong = done.stderr if done.returncode else ""
        if not wrong and made["factors"] != {"context_bytes": card.CONTEXT, "context_uncertainty_bytes": 0,
                                             "cublas_workspace_bytes": card.CUBLAS, "cublaslt_workspace_bytes": card.CUBLASLT}:
            wrong = f"factors {made['factors']}"
        convolutions = made.get("convolutions", {})
        if not wrong and convolutions["measured"] < 100:
            wrong = f"only {convolutions['measured']} convolutions"
        for key in ("forward", "input_gradient", "weight_gradient"):
            if not wrong and convolutions[key]["exact"] < 0.5 * convolutions[key]["calls"]:
                wrong = f"one half does not tell the other: {key} {convolutions[key]}"
        if not wrong and [r["name"] for r in made["runs"]] != ["se_resnet.onnx"]:
            wrong = f"runs {made['runs']}"
        say("calibrate", wrong or ("the file of measurements is left" if list(folder.glob("*.measured")) else ""))

        plain, with_profile = (estimate("se_resnet.onnx", "--batch", "8", *more) for more in ((), ("--profile", profile)))
        device = with_profile["peak"]["device_bytes"] - with_profile["peak"]["reserved_bytes"]
        say("--profile gives the context", "" if device == card.CONTEXT else f"{device}")
        say("--profile names the card", "" if "Imaginary" in json.dumps(with_profile["scenario"]) else with_profile["scenario"])
        bounded = [d["code"] for d in with_profile["diagnostics"]]
        say("the model's convolutions were measured", "conv-workspace" in bounded and bounded)
        say("and decide", plain["peak"]["allocated_bytes"] == with_profile["peak"]["allocated_bytes"] and "the same peak")
        mlp = [estimate("mlp.onnx", "--batch", "64", *more)["peak"]["allocated_bytes"] for more in ((), ("--profile", profile))]
        say("workspaces of cuBLAS come from it", "" if mlp[0] - mlp[1] > 40_000_000 else f"{mlp}")

        done = run("estimate", zoo / "mlp.onnx", "--batch", "64", "--profile", profile, "--gpu", "h200")
        say("of another card", "" if done.returncode == 2 and "Imaginary" in done.stderr else done.stderr or done.returncode)
        later = estimate("mlp.onnx", "--batch", "64", "--profile", profile, "--torch", "2.13")
        say("of another torch", "" if "profile-version" in json.dumps(later) else "not said")
        for text in ("", "{", "[]", '{"schema_version": 2}', json.dumps({**made, "device": {}}),
                     json.dumps({**made, "convolutions": {**convolutions, "table": ["1 s0 p0"]}})):
            (folder / "bad.json").write_text(text)
            done = run("estimate", zoo / "se_resnet.onnx", "--batch", "8", "--profile", folder / "bad.json")
            say(f"no profile {text[:30]!r}", "" if done.returncode == 3 and "bug" not in done.stderr else f"{done.returncode} {done.stderr}")
        done = run("estimate", zoo / "mlp.onnx", "--batch", "8", "--profile", folder / "none.json")
        say("no such profile", "" if done.returncode == 3 and done.stderr.count("\n") <= 2 else done.stderr)

        done = run("calibrate", "-o", "/dev/full/x.json", "--runner", FAKE, "--budget", "1s")
        say("a profile that cannot be written", "" if done.returncode == 5 else f"{done.returncode} {done.stderr}")
        done = run(*calibrate, "--budget", "1s")
        made = json.loads(profile.read_text()) if done.returncode == 0 else {}
        say("a budget that the start alone takes", "" if made and made["convolutions"]["measured"] >= 100 else done.stderr or made)
        done = run(*calibrate, "--budget", "10s", FAKE_CRASH="0")
        say("probes that crash", "" if done.returncode == 5 and "signal 9" in done.stderr else f"{done.returncode} {done.stderr}")
        profile.unlink()
        for left in folder.glob("*.measured"):
            left.unlink()

        process = subprocess.Popen([str(headroom), *map(str, calibrate), "--budget", "60s"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, env={**os.environ, "FAKE_SECONDS": "0.01"})
        process.stderr.readline()  # a first part is measured
        process.kill()
        process.communicate()
        measured = folder / "card.json.measured"
        kept = len(measured.read_text().splitlines()) - 1 if measured.exists() else 0
        say("what was measured is kept", "" if kept > 100 else f"{kept} lines")
        done = run(*calibrate, "--budget", "10s", FAKE_SECONDS="0.01")
        total = json.loads(profile.read_text())["convolutions"]["measured"] if done.returncode == 0 else 0
        say("and taken up", "" if total >= kept else f"{total} of {kept}: {done.stderr}")

        if len(sys.argv) > 3:
            on_cpu = folder / "on_cpu"
            on_cpu.write_text(f"""#!/bin/sh\nsed 's/"device":"cuda"/"device":"cpu"/' | {sys.argv[3]}\n""")
            on_cpu.chmod(0o755)
            done = run("calibrate", "-o", folder / "cpu.json", "--runner", on_cpu, "--budget", "12s")
            made = json.loads((folder / "cpu.json").read_text()) if done.returncode == 0 else {}
            say("PyTorch on the CPU", "" if made and made["convolutions"]["measured"] > 0 else done.stderr or made["convolutions"])
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
