"""Runs the program with a lid on its processor time and memory, and says what came of it."""

import os
import resource
import signal
import subprocess
import tempfile
from dataclasses import dataclass

CPU_SECONDS = 5
MEMORY = 1 << 30


@dataclass
class Answer:
    code: int  # negative: the signal that ended it
    out: str
    err: str
    cpu_seconds: float
    resident_bytes: int  # at most


class Program:
    def __init__(self, path, sanitized=False):
        self.path = os.path.abspath(path)
        self.slower = 10 if sanitized else 1
        self.sanitized = sanitized

    def __call__(self, arguments, folder, stdout=None, file_size=None, environment=()):
        """`folder`: working directory; `stdout`: a path to write to instead; `file_size`: the largest file it may
        write, in bytes."""

        def limits():
            cpu = CPU_SECONDS * self.slower
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if not self.sanitized:  # whose shadow memory is terabytes
                resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            if file_size is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))

        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            target = open(stdout, "wb") if stdout else out
            child = subprocess.Popen([self.path, *arguments], cwd=folder, stdin=subprocess.DEVNULL, stdout=target,
                                     stderr=err, preexec_fn=limits, env={"PATH": os.environ["PATH"], **dict(environment)})
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            if stdout:
                target.close()
            out.seek(0)
            err.seek(0)
            return Answer(child.returncode, out.read().decode("utf-8", "surrogateescape"),
                          err.read().decode("utf-8", "surrogateescape"), usage.ru_utime + usage.ru_stime,
                          usage.ru_maxrss * 1024)

    def problems(self, answer):
        """What is wrong with any answer whatever: a crash, too slow, too large."""
        if answer.code < 0:
            yield f"ended by signal {signal.Signals(-answer.code).name}"
        if answer.code == 70:
            yield "a bug of ours"
        if answer.cpu_seconds > CPU_SECONDS * self.slower:
            yield f"took {answer.cpu_seconds:.1f} s of processor time"
        if answer.resident_bytes > MEMORY * self.slower:
            yield f"took {answer.resident_bytes >> 20} MiB"

    def error_problems(self, answer, code, says):
        """What is wrong with an answer that should be one clear error: "headroom: WHERE: WHAT", and a hint line."""
        yield from self.problems(answer)
        if answer.code != code:
            yield f"exit code {answer.code}, not {code}"
        if answer.out:
            yield f"standard output holds {answer.out[:80]!r}"
        lines = answer.err.split("\n")
        if not (answer.err.endswith("\n") and len(lines) in (2, 3) and lines[0].startswith("headroom: ") and
                (len(lines) == 2 or lines[1].startswith("  hint: "))):
            yield "is not one line and a hint"
        if any(not c.isprintable() for c in answer.err.replace("\n", "")):
            yield "holds characters that a terminal obeys"
        if len(lines[0]) > 1100:
            yield f"is {len(lines[0])} characters long"
        for part in says:
            if part not in answer.err:
                yield f"does not say {part!r}"
