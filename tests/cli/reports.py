"""What is printed is harmless whatever a file's names hold, and a table keeps to the terminal's width.
Usage: reports.py PROGRAM [--sanitized]"""

import csv
import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios

from onnx_wire import graph, metadata, model, node, tensor, value
from program import Program

HOSTILE = "\x1b]0;pwned\x07\x1b[31m<script>alert(1)</script>|`$x$`*_[a](http://b)\u202e\r\n=1+1,\"'"
COLOUR = re.compile("\x1b\\[[0-9;]*m")

failures = 0


def expect(what, fine):
    global failures
    if not fine:
        failures += 1
        print("not so: " + what)


def hostile_model():
    body = graph([node("MatMul", ["x", HOSTILE + ".weight"], ["h"], HOSTILE) +
                  metadata(**{"pkg.torch.onnx.name_scopes": f"['', '{HOSTILE}', 'h']"}),
                  node("Relu", ["h"], [HOSTILE])],
                 [value("x", [HOSTILE, 64])], [value(HOSTILE)], [tensor(HOSTILE + ".weight", [64, 64])], HOSTILE)
    return model(body)


def check_hostile_names(program, folder):
    with open(os.path.join(folder, "=<b>.onnx"), "wb") as file:
        file.write(hostile_model())

    def ask(form):
        answer = program(["estimate", "=<b>.onnx", "--batch", "4", "--format", form], folder)
        expect(f"{form}: exit 0 instead of {answer.code}: {answer.err!r}", answer.code == 0)
        expect(f"{form} has no control or bidirectional characters",
               not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e]", answer.out))
        return answer.out

    ask("table")
    rows = list(csv.reader(io.StringIO(ask("csv"))))
    expect("csv: five columns", {len(row) for row in rows} == {5})
    expect("csv: no cell is a formula", not any(cell[:1] in ("=", "+", "@") for row in rows for cell in row))
    text = ask("md")
    expect("md: no HTML", "<" not in text)
    expect("md: no links", "](" not in text.replace("\\]\\(", ""))
    largest = json.loads(ask("json"))["largest"]
    expect("json: names as in the file", any(HOSTILE in t["name"] for t in largest))
    for stage in ("graph", "shapes", "program", "trace"):
        answer = program(["inspect", "=<b>.onnx", "--batch", "4", "--stage", stage], folder)
        expect(f"inspect --stage {stage}: exit 0 instead of {answer.code}: {answer.err!r}", answer.code == 0)
        expect(f"inspect --stage {stage} has no control characters",
               not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", answer.out))


def check_hostile_tables(program, folder):
    """The same of the tables of `sweep` and `fit`, whose axes may be hostile as well."""
    dim = HOSTILE.replace("=", "@")  # --dim NAME=N ends a name at the first =
    body = graph([node("MatMul", ["x", "w"], ["y"])], [value("x", ["batch", dim, 64])], [value("y")], [tensor("w", [64, 64])])
    with open(os.path.join(folder, "=<i>&$.onnx"), "wb") as file:
        file.write(model(body))
    for question in (["sweep", "--over", dim + "=4,8", "--over", "batch=2,4", "--memory", "24GiB"],
                     ["sweep", "--batch", "2", "--over", dim + "=4,8"], ["fit", "--dim", dim + "=4096", "--gpu", "t4"],
                     ["fit", "--batch", "2", "--max", dim.replace(",", ";"), "--gpu", "t4"]):
        for form in ("table", "csv", "md", "latex", "html", "json"):
            answer = program([question[0], "=<i>&$.onnx", *question[1:], "--format", form], folder)
            named = f"{question[0]} {form}"
            if "--max" in question:  # no such dimension: an error that is harmless too
                expect(f"{named}: exit 2", answer.code == 2 and not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", answer.err))
                continue
            expect(f"{named}: exit 0 instead of {answer.code}: {answer.err!r}", answer.code == 0)
            expect(f"{named} has no control or bidirectional characters",
                   not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e]", answer.out))
            if form == "csv":
                rows = list(csv.reader(io.StringIO(answer.out)))
                expect(f"{named}: one width", len({len(row) for row in rows}) == 1)
                expect(f"{named}: no formulas", not any(cell[:1] in ("=", "+", "@", "-") for row in rows for cell in row))
            elif form == "md":
                expect(f"{named}: no HTML", "<" not in answer.out)
            elif form == "html":
                expect(f"{named}: no tags from names", not re.search("<(script|img|i)[ >]", answer.out))
            elif form == "latex":
                expect(f"{named}: no commands from names", "\\input" not in answer.out and "&$" not in answer.out)


def on_terminal(program, arguments, folder, columns, **environment):
    """What a terminal of that width is sent."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    settings = termios.tcgetattr(theirs)
    settings[1] &= ~termios.OPOST
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    child = subprocess.Popen([program.path, *arguments], cwd=folder, stdout=theirs, stdin=subprocess.DEVNULL,
                             env={"PATH": os.environ["PATH"], **environment})
    os.close(theirs)
    out = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # how a terminal ends
            break
        if not part:
            break
        out += part
    os.close(ours)
    expect(f"exit 0 on a terminal of {columns} columns", child.wait() == 0)
    return out.decode()


def check_terminal(program, folder):
    long = "encoder." + "a_rather_long_name_of_a_module." * 4
    body = graph([node("MatMul", ["x", long + "weight"], ["y"])], [value("x", ["batch", 64])], [value("y")],
                 [tensor(long + "weight", [64, 64])])
    name = "a_model_with_a_name_that_is_rather_long_for_a_terminal_of_sixty_columns.onnx"
    with open(os.path.join(folder, name), "wb") as file:
        file.write(model(body))
    question = ["estimate", name, "--batch", "4", "--gpu", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "--seq", "9"]
    for columns in (60, 80, 120):
        text = on_terminal(program, question, folder, columns)
        expect("colours on a terminal", COLOUR.search(text))
        for line in COLOUR.sub("", text).split("\n"):
            expect(f"{len(line)} columns fit into {columns}: {line!r}", len(line) <= columns)
    for columns in (60, 80, 120):
        text = on_terminal(program, ["sweep", name, "--over", "batch=1:4096", "--over", "optimizer=sgd,adamw", "--gpu", "t4"],
                           folder, columns)
        expect("heat on a terminal", "\x1b[38;5;16;48;5;" in text)
        for line in COLOUR.sub("", text).split("\n"):
            expect(f"sweep: {len(line)} columns fit into {columns}: {line!r}", len(line) <= columns)
    expect("NO_COLOR is obeyed", not COLOUR.search(on_terminal(program, question, folder, 80, NO_COLOR="1")))
    expect("no colours in a pipe", not COLOUR.search(program(question, folder).out))


def main():
    program = Program(sys.argv[1], sanitized="--sanitized" in sys.argv)
    with tempfile.TemporaryDirectory() as folder:
        check_hostile_names(program, folder)
        check_hostile_tables(program, folder)
        check_terminal(program, folder)
    sys.exit(1 if failures else 0)


main()
