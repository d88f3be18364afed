"""`headroom report`: the document's figures are those of the other commands, a page needs nothing from elsewhere, and
what a file's names hold is harmless in it, as in the advice. Usage: report.py PROGRAM ZOO [--sanitized]"""

import html.parser
import json
import os
import re
import sys
import tempfile

from onnx_wire import graph, metadata, model, node, tensor, value
from program import Program

HOSTILE = "\x1b]0;pwned\x07<script>alert(1)</script>|`$x$`*_[a](http://b)\u202e\r\n=1+1,\"'\\input{x}"
UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e]")

failures = 0


def expect(what, fine):
    global failures
    if not fine:
        failures += 1
        print("not so: " + what)


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.links, self.text = [], set(), [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.links += [v for k, v in attributes if k in ("href", "src", "style") or k.startswith("on")]
        if tag not in ("meta", "link", "path"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag != "path":
            expect(f"</{tag}> closes what is open", self.open and self.open.pop() == tag)

    def handle_data(self, data):
        self.text += data


def human(n):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1023.995 or unit == "GiB":
            return f"{n:.2f} {unit}" if n < 10 else f"{n:.1f} {unit}" if n < 100 else f"{n:.0f} {unit}"
        n /= 1024


def check_document(program, zoo, folder):
    question = [os.path.join(zoo, "gpt2.onnx"), "--batch", "4", "--seq", "128"]
    told = json.loads(program(["estimate", *question, "--gpu", "rtx3060", "--format", "json"], folder).out)
    answer = program(["report", *question, "--gpu", "rtx3060", "-o", "review.html"], folder)
    expect(f"exit 0, not {answer.code}: {answer.err}", answer.code == 0 and not answer.out)
    with open(os.path.join(folder, "review.html"), encoding="utf-8") as file:
        page = Page(file.read())
    expect("every element is closed", not page.open)
    expect(f"nothing from elsewhere: {page.links}", page.links == ["data:,"])
    expect("a timeline, tables, code", {"svg", "path", "table", "pre"} <= page.tags)
    for figure in ("allocated", "reserved", "device"):
        expect(f"the {figure} figure", human(told["peak"][f"{figure}_bytes"]) in page.text)
    for heading in ("The answer", "Where it goes", "Other sizes", "Other cards", "What to change", "Assumptions"):
        expect(heading, heading in page.text)
    for diagnostic in told["diagnostics"]:
        expect(f"{diagnostic['code']} is said", diagnostic["code"] in page.text)

    program(["report", *question, "-o", "review.md"], folder)
    with open(os.path.join(folder, "review.md"), encoding="utf-8") as file:
        text = file.read()
    expect("Markdown links its picture", "](review.svg)" in text and os.path.exists(os.path.join(folder, "review.svg")))
    expect("the picture stays away from standard output", "](" not in program(["report", *question, "--format", "md"], folder).out)
    program(["report", *question, "-o", "review.tex"], folder)
    with open(os.path.join(folder, "review.tex"), encoding="utf-8") as file:
        text = file.read()
    expect("LaTeX is whole", text.startswith("\\documentclass") and text.endswith("\\end{document}\n"))
    expect("LaTeX: braces match", text.count("{") - text.count("\\{") == text.count("}") - text.count("\\}"))
    answer = program(["report", *question, "--over", "seq=64,128", "--format", "md"], folder)
    expect("--over says what is swept", "| seq |" in answer.out.replace("  ", " "))
    answer = program(["report", *question, "--memory", "600MiB", "-o", "r.html"], folder)
    expect(f"exit 1 where it does not fit, not {answer.code}", answer.code == 1)
    answer = program(["report", *question, "--task", "infer", "-o", "r.html"], folder)
    expect(f"inference: exit 0, not {answer.code}: {answer.err}", answer.code == 0)


def check_hostile(program, folder):
    name = "=<b>.onnx"
    body = graph([node("MatMul", ["x", HOSTILE + ".weight"], ["h"], HOSTILE) +
                  metadata(**{"pkg.torch.onnx.name_scopes": f"['', '{HOSTILE}', 'h']"}),
                  node("Relu", ["h"], [HOSTILE])],
                 [value("x", ["batch", HOSTILE.replace("=", "@"), 64])], [value(HOSTILE)],
                 [tensor(HOSTILE + ".weight", [64, 64])], HOSTILE)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(model(body))
    flags = ["--batch", "4", "--dim", HOSTILE.replace("=", "@") + "=16"]
    for command, form in (("advise", "table"), ("advise", "csv"), ("advise", "md"), ("report", "html"), ("report", "md"),
                          ("report", "latex")):
        answer = program([command, name, *flags, "--memory", "820MiB", "--format", form], folder)
        expect(f"{command} {form}: exit 0 or 1 instead of {answer.code}: {answer.err!r}", answer.code in (0, 1))
        expect(f"{command} {form}: no control or bidirectional characters", not UNSEEN.search(answer.out))
        if form == "html":
            page = Page(answer.out)
            expect("html: no element of a name", not page.tags & {"script", "b", "img"} and page.links == ["data:,"])
        if form == "latex":
            expect("latex: no command of a name", "\\input" not in answer.out)
    told = json.loads(program(["advise", name, *flags, "--format", "json"], folder).out)
    expect("json: flags as they have to be given", any(HOSTILE.replace("=", "@") in f for f in told["base"]["flags"]))


def main():
    program = Program(sys.argv[1], "--sanitized" in sys.argv)
    with tempfile.TemporaryDirectory() as folder:
        check_document(program, os.path.abspath(sys.argv[2]), folder)
        check_hostile(program, folder)
    sys.exit(1 if failures else 0)


main()
