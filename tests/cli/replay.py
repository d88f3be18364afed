"""`headroom replay` on the recordings of tests/allocate/data: equal to what was recorded, other settings, a card's
memory, leaks, and what it says to bad files and flags. Usage: replay.py PROGRAM DATA [--sanitized]"""

import json
import lzma
import os
import sys
import tempfile

from program import Program

GIB = 1 << 30


class Recordings:
    def __init__(self, program, packed, folder):
        self.program, self.folder = program, folder
        self.names = sorted(name[:-3] for name in os.listdir(packed) if name.endswith(".xz"))
        for name in self.names:
            with lzma.open(os.path.join(packed, name + ".xz")) as file:
                self.write(name, file.read())

    def write(self, name, data):
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(data)

    def ask(self, *arguments):
        return self.program(["replay", *arguments], self.folder)

    def json(self, *arguments, code=0):
        answer = self.ask(*arguments, "--format", "json")
        assert answer.code == code, (answer.code, answer.err)
        assert not list(self.program.problems(answer))
        return json.loads(answer.out)


def check_of_everything(recordings):
    for name in recordings.names:
        result = recordings.json(name, "--check")
        check = result["check"]
        assert check["equal"], (name, check)
        assert check["addresses"] == check["addresses_equal"], name
        assert check["addresses"] > 0 or name.startswith("async-"), name
        for what in ("segment_events", "segments", "blocks"):
            assert check[what] == check[what + "_equal"], (name, what)
        assert check["oom_events"] == check["oom_events_recorded"], name
        # The recording's own counters, where the file holds them.
        for what, peak in check.get("peaks", {}).items():
            bound = 0.03 if name.startswith("async-") and what == "reserved" else 0
            assert abs(peak["replayed_bytes"] - peak["recorded_bytes"]) <= bound * peak["recorded_bytes"], (name, what)


def several_histories(recordings):
    result = recordings.json("whole_runs.json", "--check")
    assert len(result["histories"]) == 4
    assert result["peak"]["reserved_bytes"] == max(h["peak"]["reserved_bytes"] for h in result["histories"])
    assert result["check"]["addresses"] == sum(h["check"]["addresses"] for h in result["histories"])


def other_settings(recordings):
    name = "default-lengths.json"
    recorded = recordings.json(name)
    assert recorded["peak"]["reserved_bytes"] == 3267362816
    assert len(recorded["settings"]) == 1 and recorded["settings"][0]["as_recorded"]
    one = recordings.json(name, "--alloc-conf", "expandable_segments:True")
    assert one["alloc_conf"] == "expandable_segments:True"
    assert one["peak"] == one["settings"][1]["peak"]
    assert one["peak"]["reserved_bytes"] < recorded["peak"]["reserved_bytes"] * 2 / 3
    assert one["fragmentation"] < 0.1 < recorded["fragmentation"]
    two = recordings.json(name, "--alloc-conf", "expandable_segments:True", "--alloc-conf", "backend:cudaMallocAsync")
    assert [s["alloc_conf"] for s in two["settings"]] == ["", "expandable_segments:True", "backend:cudaMallocAsync"]
    assert two["peak"] == recorded["peak"]
    assert two["settings"][1]["peak"] == one["peak"]
    assert [d["code"] for d in two["diagnostics"]] == ["async-reserved"]
    # And beside each other for people and for spreadsheets.
    arguments = [name, "--alloc-conf", "expandable_segments:True", "--alloc-conf", "max_split_size_mb:64"]
    table = recordings.ask(*arguments).out
    assert all(conf in table for conf in ("recorded: defaults", "expandable_segments:True", "max_split_size_mb:64"))
    rows = recordings.ask(*arguments, "--format", "csv").out.splitlines()
    assert len(rows) == 4 and all(row.count(",") == rows[0].count(",") for row in rows)
    assert recordings.ask(*arguments, "--format", "md").out.count("\n| ") == 4


def would_it_have_fitted(recordings):
    name = "default-lengths.json"
    roomy = recordings.json(name, "--memory", "2GiB")  # less than its peak: cached segments go back in time
    assert roomy["fits"] and roomy["oom_events"] == 0 and roomy["peak"]["reserved_bytes"] <= 2 * GIB
    tight = recordings.json(name, "--memory", "1GiB", code=1)
    assert not tight["fits"] and tight["oom_events"] > 0
    assert "total capacity of 1024.00 MiB" in tight["ooms"][0]["text"]
    assert "fits" not in recordings.json(name)
    # One of the settings to compare is enough.
    both = ["--alloc-conf", "max_split_size_mb:64", "--alloc-conf", "expandable_segments:True", "--memory", "1600MiB"]
    compared = recordings.json(name, *both)
    assert [s.get("fits") for s in compared["settings"]] == [None, False, True] and compared["fits"]
    refused = recordings.json("default-oom.json")
    assert refused["oom_events"] == 31
    assert recordings.json("default-oom.json", "--memory", "80GiB")["avoided_oom_events"] == 31


def leaks(recordings):
    leak = recordings.json("snap-leak.pickle")["leaks"][0]
    assert leak["call_site"].startswith("/home/user/train.py:") and leak["bytes"] > 50 << 20
    assert "what keeps growing" in recordings.ask("snap-leak.pickle").out
    assert recordings.json("snap-plain.pickle")["leaks"] == []


def refusals(recordings):
    with open(os.path.join(recordings.folder, "snap-plain.pickle"), "rb") as file:
        whole = file.read()
    recordings.write("cut.pickle", whole[: len(whole) // 2])
    recordings.write("calls.pickle", b"cos\nsystem\n(S'true'\ntR.")
    recordings.write("figures.json", b'{"conf": "", "stats": {"allocated_bytes.all.peak": 1}}')
    recordings.write("empty.pickle", b"")
    for arguments, code, says in (
        (["cut.pickle"], 3, ["cut.pickle"]),
        (["calls.pickle"], 3, ["calls.pickle"]),
        (["figures.json"], 3, ["figures.json", "statistics only"]),
        (["empty.pickle"], 3, ["empty.pickle"]),
        (["nowhere.pickle"], 3, ["nowhere.pickle"]),
        ([], 2, ["wants a history"]),
        (["snap-plain.pickle", "snap-leak.pickle"], 2, ["one history"]),
        (["snap-plain.pickle", "--memory", "lots"], 2, ["--memory"]),
        (["snap-plain.pickle", "--alloc-conf", "expandable_segment:True"], 2, ["expandable_segment"]),
        (["snap-plain.pickle", "--torch", "new"], 2, ["--torch"]),
        (["snap-plain.pickle", "--batch", "8"], 2, ["--batch"]),
        (["snap-plain.pickle", "-o", "snap-plain.pickle"], 2, ["-o"]),
    ):
        answer = recordings.ask(*arguments)
        problems = list(recordings.program.error_problems(answer, code, says))
        assert not problems, (arguments, problems, answer.err)


def same_bytes(recordings):
    for form in ("table", "json", "csv", "md"):
        arguments = ["snap-ring.pickle", "--check", "--alloc-conf", "expandable_segments:True", "--format", form]
        assert recordings.ask(*arguments).out == recordings.ask(*arguments).out, form


def main():
    program = Program(sys.argv[1], sanitized="--sanitized" in sys.argv)
    with tempfile.TemporaryDirectory() as folder:
        recordings = Recordings(program, sys.argv[2], folder)
        for part in (check_of_everything, several_histories, other_settings, would_it_have_fitted, leaks, refusals,
                     same_bytes):
            part(recordings)
            print(f"{part.__name__}: as it should be")


main()
