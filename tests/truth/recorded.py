"""What the comparisons with measured runs share: the recordings, running headroom on many files, tables, the baseline."""
import concurrent.futures
import lzma
import pathlib
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
EXPORTERS = ("dynamo", "ts", "dynamo-eval", "ts-eval")


def unpack(archive, folder):
    """Extracts one of the archives beside this file."""
    with tarfile.open(HERE / archive) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # Python before 3.12 may not know it
        tar.extractall(folder)


def lines_of(archive):
    with lzma.open(HERE / archive, "rt") as file:
        return file.read().splitlines()


def side_by_side(work, items):
    """[work(item), ...] with two at a time; the work is done in processes that `work` starts and waits for."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, items))


def quantile(values, share):
    """The figure below which `share` of the values lie, by the nearest rank above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def markdown(header, rows, text_columns=1):
    """A Markdown table, figures to the right."""
    lines = ["| " + " | ".join(header) + " |",
             "|" + "|".join("---" if i < text_columns else "---:" for i in range(len(header))) + "|"]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


class Baseline:
    """A committed table of figures, tab-separated, first line the names; `keys` columns name the row."""

    def __init__(self, name, columns, keys):
        self.path, self.columns, self.keys = HERE / name, columns, keys

    def read(self):
        """{key: {column: figure or None}}"""
        rows = {}
        for line in self.path.read_text().splitlines()[1:]:
            cells = line.split("\t")
            rows[tuple(cells[:self.keys])] = {name: int(cell) if cell else None
                                              for name, cell in zip(self.columns[self.keys:], cells[self.keys:])}
        return rows

    def write(self, rows):
        lines = ["\t".join(self.columns)]
        for key, figures in rows.items():
            cells = [figures[name] for name in self.columns[self.keys:]]
            lines.append("\t".join([*key, *("" if cell is None else str(cell) for cell in cells)]))
        self.path.write_text("\n".join(lines) + "\n")


def verdict(then, now, judge, program):
    """Compares {key: figures} with the baseline and says what changed. judge(key, then, now) -> (worse, better): lists of
    texts. Exit status 1 if anything got worse."""
    worse, better = [], []
    for key in sorted(then.keys() | now.keys()):
        name = "  ".join(key)
        if key not in now or key not in then:
            worse.append(f"{name}: {'not compared any more' if key in then else 'not in the baseline'}")
            continue
        for texts, found in zip((worse, better), judge(key, then[key], now[key])):
            texts.extend(f"{name}: {text}" for text in found)
    for title, texts in (("better", better), ("WORSE", worse)):
        for text in texts:
            print(f"{title}  {text}")
    if worse or better:
        print(f"{len(worse)} figures got worse, {len(better)} better; `{program} BINARY` writes tables and baseline again")
    else:
        print("every figure is as in the baseline")
    sys.exit(1 if worse else 0)


def check_page(path, text, program):
    if path.read_text() != text:
        sys.exit(f"{path.name} is not what its baseline says: run {program} BINARY")
