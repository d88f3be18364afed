"""`headroom fit` against `headroom estimate`: what it says of a card is what an estimate of that size on that card says.
Usage: fit.py PROGRAM ZOO [--sanitized]"""

import csv
import io
import json
import os
import sys
import tempfile

from program import Program

failures = 0


def expect(what, fine):
    global failures
    if not fine:
        failures += 1
        print("not so: " + what)


class Question:
    def __init__(self, program, zoo):
        self.program, self.zoo = program, zoo

    def __call__(self, command, model, flags, code=(0,)):
        answer = self.program([command, os.path.join(self.zoo, model), *flags], self.zoo)
        expect(f"{command} {model} {flags}: exit {answer.code}, not one of {code}: {answer.err[:200]!r}", answer.code in code)
        for problem in self.program.problems(answer):
            expect(f"{command} {model} {flags}: {problem}", False)
        return answer

    def json(self, command, model, flags, code=(0,)):
        return json.loads(self(command, model, [*flags, "--format", "json"], code).out)


def figures(peak):
    return {key: peak[key] for key in ("allocated_bytes", "reserved_bytes", "device_bytes")}


def check_max(ask):
    """At `max` it fits, at `next` it does not; peaks and what is spare are those of the estimate."""
    for model, flags, knob in [("mobilenet_v2.onnx", ["--optimizer", "sgd-momentum"], "--batch={}"),
                               ("gpt2.onnx", ["--seq", "512", "--precision", "amp-bf16"], "--batch={}"),
                               ("gpt2.onnx", ["--batch", "24", "--precision", "bf16", "--max", "seq"], "--seq={}")]:
        answer = ask.json("fit", model, [*flags, "--gpu", "rtx3060", "--gpu", "t4"])
        plain = [f for f in flags if f not in ("--max", "seq")] if "--max" in flags else flags
        for card in answer["cards"]:
            for size, peak, spare, code in [(card["max"], card["peak"], card["spare_bytes"], 0),
                                            (card["next"], card["next_peak"], card["next_spare_bytes"], 1)]:
                e = ask.json("estimate", model, [*plain, knob.format(size), "--gpu", card["gpu"]], (code,))
                expect(f"{model} {card['gpu']} {knob.format(size)}: the same peak", figures(e["peak"]) == figures(peak))
                expect(f"{model} {card['gpu']} {knob.format(size)}: the same spare", e["spare_bytes"] == spare)
            expect(f"{model}: next is one more", card["next"] == card["max"] + 1)


def check_own_sizes(ask):
    """For a given batch, which cards hold it."""
    answer = ask.json("fit", "gpt2.onnx", ["--batch", "16", "--seq", "512", "--gpu", "rtx3060", "--gpu", "h100"])
    expect("a small card does not hold it, a large one does", [c["fits"] for c in answer["cards"]] == [False, True])
    for card in answer["cards"]:
        e = ask.json("estimate", "gpt2.onnx", ["--batch", "16", "--seq", "512", "--gpu", card["gpu"]], (0, 1))
        expect(f"{card['gpu']}: as estimate says", (e["fits"], e["spare_bytes"]) == (card["fits"], card["spare_bytes"]))
    ask("fit", "gpt2.onnx", ["--batch", "64", "--seq", "512", "--memory", "4GiB"], (1,))
    ask("fit", "gpt2.onnx", ["--seq", "512", "--memory", "2GiB"], (1,))


def check_dimensions(ask):
    # Four halvings and as many concatenations: only some sides can be run.
    card = ask.json("fit", "unet.onnx", ["--batch", "1", "--max", "resolution", "--memory", "3GiB"])["cards"][0]
    expect(f"unet: a side of {card['max']} can be halved", card["max"] % 16 == 0 and card["next"] == card["max"] + 16)
    for side, peak, code in [(card["max"], card["peak"], 0), (card["next"], card["next_peak"], 1)]:
        e = ask.json("estimate", "unet.onnx", ["--batch", "1", "--shape", f"x=1x3x{side}x{side}", "--memory", "3GiB"], (code,))
        expect(f"unet of {side}: as estimated", figures(e["peak"]) == figures(peak))
    # Positions end at 1,024: longer sequences cannot be run, on no card.
    card = ask.json("fit", "gpt2.onnx", ["--batch", "1", "--max", "seq", "--gpu", "h100"])["cards"][0]
    expect("gpt2: as long as its positions", (card["max"], card["next"], card["next_peak"]) == (1024, 1025, None))
    expect("gpt2: says why", "outside axis 0 of size 1024" in card["next_error"]["what"])
    for flags, says in [(["--max", "nothing", "--batch", "1"], "no such dimension"), (["--max", "batch", "--batch", "2"], "exclude"),
                        (["--seq", "64", "--max", "seq", "--batch", "2"], "exclude"), (["--max", "seq", "--global-batch", "8", "--batch", "1"], "needs a batch"),
                        (["--seq", "64", "--gpu", "rtx409"], "no card is named"), (["--seq", "64", "--prices", "nowhere.csv"], "cannot be read")]:
        answer = ask("fit", "gpt2.onnx", flags, (2, 3))
        expect(f"{flags}: says {says!r}: {answer.err!r}", says in answer.err)


def check_global_batch(ask):
    answer = ask.json("fit", "gpt2.onnx", ["--seq", "512", "--global-batch", "96", "--gpu", "rtx3060", "--gpu", "rtx4090"])
    for card in answer["cards"]:
        a = card["accumulation"]
        expect(f"{card['gpu']}: the micro-batches are the global batch", a["micro_batch"] * a["accumulate"] == 96)
        expect(f"{card['gpu']}: so many cards hold it", card["max"] * a["cards"] >= 96 > card["max"] * (a["cards"] - 1))
        e = ask.json("estimate", "gpt2.onnx", ["--seq", "512", "--batch", str(a["micro_batch"]), "--accumulate",
                                               str(a["accumulate"]), "--gpu", card["gpu"]])
        expect(f"{card['gpu']}: accumulation as estimated", figures(e["peak"]) == figures(a["peak"]))


def check_prices(ask, folder):
    path = os.path.join(folder, "prices.csv")
    question = ["--seq", "512", "--gpu", "rtx3060", "--gpu", "rtx4090", "--prices", path]

    def prices(text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    prices('provider,gpu,price,currency\n"a, b",4090,0.44,EUR\nother,rtx4090,0.39,EUR\nother,NVIDIA GeForce RTX 3060,0.1,EUR\n')
    cards = ask.json("fit", "gpt2.onnx", question)["cards"]
    expect("prices by any name, the lowest", [c["price"] for c in cards] ==
           [{"per_hour": 0.1, "currency": "EUR"}, {"per_hour": 0.39, "currency": "EUR"}])
    expect("the cheapest is named", "RTX 3060, 0.10 EUR" in ask("fit", "gpt2.onnx", question).out)
    for text, says in [("", "is empty"), ("a,b\n", "does not name the columns"), ("gpu,price\nrtx409,1\n", "no card is named"),
                       ("gpu,price\nrtx4090,cheap\n", "is no price"), ("gpu,price\nrtx4090\n", "too few fields"),
                       ("gpu,price\nrtx4090,nan\n", "is no price"), ('gpu,price\n"rtx4090,1\n', "quote is not closed"),
                       ("gpu,price\nrtx4090,-1\n", "is no price")]:
        prices(text)
        answer = ask("fit", "gpt2.onnx", question, (3,))
        expect(f"prices {text!r}: says {says!r} and where: {answer.err!r}", says in answer.err and "prices.csv" in answer.err)


def check_formats(ask):
    question = ["--seq", "128", "--gpu", "rtx3060", "--gpu", "t4", "--global-batch", "64"]
    rows = list(csv.DictReader(io.StringIO(ask("fit", "gpt2.onnx", [*question, "--format", "csv"]).out)))
    cards = ask.json("fit", "gpt2.onnx", question)["cards"]
    expect("csv: as the JSON", [(r["gpu"], int(r["max"]), int(r["device_bytes"])) for r in rows] ==
           [(c["gpu"], c["max"], c["peak"]["device_bytes"]) for c in cards])
    for form, holds in [("table", "max batch"), ("md", "| max batch |"), ("latex", "\\toprule"), ("html", "</table>")]:
        first = ask("fit", "gpt2.onnx", [*question, "--format", form]).out
        expect(f"{form}: holds {holds!r}", holds in first)
        expect(f"{form}: the same bytes again, by one thread", ask("fit", "gpt2.onnx", [*question, "--format", form, "-j", "1"]).out == first)


def main():
    ask = Question(Program(sys.argv[1], sanitized="--sanitized" in sys.argv), os.path.abspath(sys.argv[2]))
    check_max(ask)
    check_own_sizes(ask)
    check_dimensions(ask)
    check_global_batch(ask)
    check_formats(ask)
    with tempfile.TemporaryDirectory() as folder:
        check_prices(ask, folder)
    sys.exit(1 if failures else 0)


main()
