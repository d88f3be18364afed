"""Every bad question gets one clear line: what, where, and often a hint; the right exit code, in little time and memory,
nothing on standard output and no file left behind. Usage: bad_input.py PROGRAM [--sanitized]"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

from bad_models import bad_models, good_model
from bad_usage import bad_usage
from program import Program

failures = 0


def report(name, answer, problems):
    global failures
    problems = list(problems)
    if problems:
        failures += 1
        print(f"{name}: " + "; ".join(problems) + f"\n    exit {answer.code}: {answer.err[:300]!r}")


def write(folder, name, content):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(content)
    return path


def left_behind(folder, before):
    after = set(os.listdir(folder))
    if after != before:
        yield f"leaves {sorted(after ^ before)} behind"


def check_models(program, folder):
    for bad in bad_models():
        path = write(folder, bad.name, bad.content)
        before = set(os.listdir(folder))
        answer = program(["estimate", bad.name, *bad.arguments, "--format", "json", "-o", "result.json"], folder)
        if answer.code == 0 and 0 in bad.codes:
            result = os.path.join(folder, "result.json")
            problems = list(program.problems(answer))
            with open(result, encoding="utf-8") as file:
                json.load(file)
            os.remove(result)
        else:
            code = answer.code if answer.code in bad.codes else bad.codes[0]
            problems = [*program.error_problems(answer, code, [*bad.says, bad.name]), *left_behind(folder, before)]
        report(bad.name, answer, problems)
        os.remove(path)


def check_usage(program, folder):
    for name, arguments, code, says in bad_usage():
        before = set(os.listdir(folder))
        answer = program(arguments, folder)
        report(name, answer, [*program.error_problems(answer, code, says), *left_behind(folder, before)])


def check_outputs(program, folder):
    """Results that cannot be written."""
    def check(name, output, says, **options):
        before = set(os.listdir(folder))
        arguments = ["estimate", "model.onnx", "--batch", "2"] + (["-o", output] if output else [])
        answer = program(arguments, folder, **options)
        report(name, answer, [*program.error_problems(answer, 5, says), *left_behind(folder, before)])

    os.mkdir(os.path.join(folder, "folder"))
    check("output: a folder", "folder", ["folder"])
    check("output: no such folder", "nowhere/result", ["nowhere/result", "No such file"])
    check("output: below a file", "model.onnx/result", ["model.onnx/result"])
    check("output: full disk", "/dev/full", ["/dev/full", "No space left", "free some space"])
    check("standard output: full disk", None, ["standard output", "No space left"], stdout="/dev/full")
    check("output: file size limit", "result", ["result", "File too large"], file_size=1000)
    if os.geteuid() != 0:
        locked = os.path.join(folder, "locked")
        os.mkdir(locked, 0o500)
        check("output: folder without permission", "locked/result", ["locked/result", "Permission denied"])
    answer = program(["estimate", "model.onnx", "--batch", "2", "-o", "model.onnx"], folder)
    report("output: over the model", answer, program.error_problems(answer, 2, ["model.onnx", "-o"]))
    check_full_file_system(program, folder)


def check_full_file_system(program, folder):
    """A file system of 8 KiB in a namespace of its own, where the kernel lets us make one."""
    script = ('mount -t tmpfs -o size=8k none "$1" || exit 99\n'
              '"$2" inspect "$3" --stage trace --batch 2 -o "$1/out"; code=$?\n'
              'ls -A "$1"; exit $code')
    place = os.path.join(folder, "small")
    os.mkdir(place)
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", place, program.path,
               os.path.join(folder, "model.onnx")]
    run = subprocess.run(command, capture_output=True, text=True, check=False) if shutil.which("unshare") else None
    if run is None or run.returncode == 99 or "unshare" in run.stderr:
        print("skipped: a full file system: " + (run.stderr.strip() if run else "there is no unshare"))
        return
    run.code, run.err = run.returncode, run.stderr
    problems = [] if run.code == 5 else [f"exit code {run.code}, not 5"]
    if run.stdout:
        problems.append(f"leaves {run.stdout!r} behind")
    if "No space left" not in run.stderr:
        problems.append("does not say 'No space left'")
    report("output: full file system", run, problems)


def main():
    program = Program(sys.argv[1], sanitized="--sanitized" in sys.argv)
    with tempfile.TemporaryDirectory() as folder:
        check_models(program, folder)
        write(folder, "model.onnx", good_model())
        check_usage(program, folder)
        check_outputs(program, folder)
    sys.exit(1 if failures else 0)


main()
