"""The manual page, the help and the completions name every command and every option, and the page is sound roff.
Usage: manual.py PROGRAM [--sanitized]"""

import re
import shutil
import subprocess
import sys

from program import Program

failures = 0


def expect(what, fine):
    global failures
    if not fine:
        failures += 1
        print("not so: " + what)


def main():
    program = Program(sys.argv[1], "--sanitized" in sys.argv)
    page = program(["man"], "/").out
    text = page.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "").replace("\\fI", "")
    shells = {shell: program(["completions", shell], "/").out for shell in ("bash", "zsh", "fish")}
    commands = re.findall(r"^  (\w+)  +", program(["--help"], "/").out, re.MULTILINE)
    expect("there are commands", len(commands) > 8)
    for command in commands:
        expect(f"man: {command}", f".SS {command}" in text)
        options = set(re.findall(r"--([a-z-]+)", program([command, "--help"], "/").out.split("\nexamples:")[0]))
        for option in options - {"help"}:
            expect(f"man: --{option}", f"--{option}" in text)
            for shell, script in shells.items():
                mark = f"-l {option} " if shell == "fish" else f"--{option}"
                expect(f"{shell}: {command} --{option}", mark in script)
    if shutil.which("groff"):
        drawn = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True, check=False)
        expect(f"groff has nothing to say: {drawn.stderr}", drawn.returncode == 0 and not drawn.stderr)
    if shutil.which("bash"):
        expect("bash reads its completions", subprocess.run(["bash", "-n"], input=shells["bash"], text=True).returncode == 0)
    sys.exit(1 if failures else 0)


main()
