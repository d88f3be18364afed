"""Every graph of models/zoo gets an answer whose parts make the whole, with the parameters that zoo.json counts; asked
again, the same bytes. Usage: zoo.py PROGRAM ZOO [--sanitized]"""

import json
import os
import sys

from program import Program


def question(row):
    flags = ["--batch", "2", "--outputs", "drop"]
    if "--seq" in row["flags"]:
        flags += ["--seq", "64"]
    return flags


def without_seconds(text):
    return "".join(line for line in text.splitlines(True) if not line.startswith('  "seconds"'))


def problems_of(program, zoo, row):
    def ask(form):
        answer = program(["estimate", row["file"], *question(row), "--format", form], zoo)
        if answer.code != 0 or answer.err:
            problems.append(f"--format {form}: exit {answer.code}: {answer.err[:300]!r}")
        return answer

    problems = []
    answer = ask("json")
    problems += program.problems(answer)
    if answer.code != 0:
        return problems
    result = json.loads(answer.out)
    parts, whole = sum(result["categories"].values()), result["peak"]["allocated_bytes"]
    if parts != whole:
        problems.append(f"the categories are {parts} bytes together, the peak is {whole}")
    problems += [f"diagnostic: {d['message']}" for d in result["diagnostics"] if d["severity"] == "error"]
    found = {"parameters": result["model"]["parameters"], "weight_bytes": result["resident"]["weights_bytes"],
             "buffer_bytes": result["resident"]["buffers_bytes"]}
    # Without the bytes of the weights nobody can see that two are tied: then the result says so.
    if not any(d["code"] == "tied-weights-unknown" for d in result["diagnostics"]):
        # What a tracer computed once (frequencies, positions) is a small constant of its file, which counts as a buffer.
        slack = {"buffer_bytes": 4096 if ".ts." in row["file"] else 0}
        problems += [f"{key} is {n}, not {row[key]}" for key, n in found.items()
                     if not 0 <= n - row[key] <= slack.get(key, 0)]
    if without_seconds(ask("json").out) != without_seconds(answer.out):
        problems.append("--format json: other bytes the second time")
    for form in ("table", "csv", "md"):
        if ask(form).out != ask(form).out:
            problems.append(f"--format {form}: other bytes the second time")
    return problems


def main():
    program, zoo = Program(sys.argv[1], sanitized="--sanitized" in sys.argv), sys.argv[2]
    with open(os.path.join(zoo, "zoo.json"), encoding="utf-8") as file:
        rows = json.load(file)["models"]
    failed = False
    for row in rows:
        for problem in problems_of(program, zoo, row):
            failed = True
            print(f"{row['file']}: {problem}")
    sys.exit(failed)


main()
