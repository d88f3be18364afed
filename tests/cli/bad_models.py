"""Files that are no model, or a wrong one: name, bytes, and what the error must say. A file `NAME` is estimated
with the arguments of its row."""

import random
from dataclasses import dataclass, field

from onnx_wire import (BOOL, FLOAT, INT64, data, function, graph, metadata, model, node, number, tensor, value, varint)


@dataclass
class Bad:
    name: str
    content: bytes
    says: list  # parts of the message: what, where, hint
    arguments: list = field(default_factory=list)
    codes: tuple = (3,)  # more where it depends on what became of the file


def one_op(op, dims, initializers=(), inputs=("x",), outputs=("y",), **attributes):
    return model(graph([node(op, inputs, outputs, "the_" + op, **attributes)], [value("x", dims)], [value("y")],
                       initializers))


def good_model():
    """A perceptron with names and metadata, weights left out."""
    nodes = []
    last = "x"
    for i in range(4):
        nodes.append(node("Gemm", [last, f"layer.{i}.weight", f"layer.{i}.bias"], [f"h{i}"], f"gemm_{i}", transB=1) +
                     metadata(**{"pkg.torch.onnx.fx_node": f"%linear_{i} : call_function[target=linear](args = ())"}))
        nodes.append(node("Relu", [f"h{i}"], [f"r{i}"], f"relu_{i}"))
        last = f"r{i}"
    weights = []
    for i in range(4):
        weights += [tensor(f"layer.{i}.weight", [64, 64]), tensor(f"layer.{i}.bias", [64])]
    return model(graph(nodes, [value("x", ["batch", 64])], [value(last, ["batch", 64])], weights))


def cut():
    whole = good_model()
    for i in range(20):
        size = max(1, len(whole) * i // 20)
        yield Bad(f"cut-at-{size}", whole[:size], ["damaged", "cut"], ["--batch", "2"])
    inside = whole.index(b"gemm_2") + 3
    yield Bad("cut-inside-a-node", whole[:inside], ["damaged", "byte", "cut"], ["--batch", "2"])


def mutated():
    whole = good_model()
    for seed in range(60):
        chance = random.Random(seed)
        content = bytearray(whole)
        for _ in range(chance.choice([1, 1, 4, 32])):
            content[chance.randrange(len(content))] = chance.randrange(256)
        yield Bad(f"mutated-{seed}", bytes(content), [], ["--batch", "2"], codes=(0, 2, 3))


def nested_ifs(depth):
    # From the inside out, as a message begins with its size; what stands in front is put together backwards.
    end = data(12, value("y"))
    content = [data(1, node("Abs", ["x"], ["y"])) + end]
    size = len(content[0])
    front, back = [], []
    for _ in range(depth):
        for number_, before in ((6, data(1, "then_branch")), (5, data(1, "c") + data(2, "y") + data(4, "If")), (1, b"")):
            front.append(before + varint(number_ << 3 | 2) + varint(size))
            size += len(front[-1])
        back.append(end)
        size += len(end)
    body = b"".join(reversed(front)) + content[0] + b"".join(back)
    return number(1, 8) + data(7, body) + data(8, number(2, 17))


def recursive_function():
    again = function("again", "local", ["a"], ["b"], [node("again", ["a"], ["b"], domain="local")])
    return model(graph([node("again", ["x"], ["y"], "call", "local")], [value("x", [2])], [value("y")]),
                 domains=["local"], functions=[again])


def functions_that_double(levels):
    functions = []
    for i in range(levels):
        inner = f"f{i - 1}" if i else "Abs"
        domain = "local" if i else ""
        functions.append(function(f"f{i}", "local", ["a"], ["c"],
                                  [node(inner, ["a"], ["b"], domain=domain), node(inner, ["b"], ["c"], domain=domain)]))
    return model(graph([node(f"f{levels - 1}", ["x"], ["y"], "call", "local")], [value("x", [2])], [value("y")]),
                 domains=["local"], functions=functions)


def wrong_graphs():
    ints = lambda name, *v: tensor(name, [len(v)], INT64, integers=v)
    scalar = lambda name, v: tensor(name, [], INT64, integers=[v])
    yield Bad("dim-1-TB", one_op("Relu", [1 << 40]), ["x", "2^39"])
    yield Bad("dim-1-TB-of-a-weight", one_op("Add", [2], [tensor("w", [1 << 40])], ["x", "w"]), ["w", "2^39"])
    yield Bad("product-overflows", one_op("Relu", [1 << 31, 1 << 31, 1 << 31]), ["x", "64 bits"])
    yield Bad("product-overflows-in-a-weight", one_op("Add", [2], [tensor("w", [1 << 38, 1 << 38])], ["x", "w"]),
              ["w", "64 bits"])
    yield Bad("product-overflows-inside", one_op("Mul", [1 << 32, 1], [tensor("w", [1, 1 << 32])], ["x", "w"]),
              ["the_Mul", "64 bits"])
    yield Bad("dim-negative", one_op("Relu", ["batch", -5]), ["x", "-5", "negative"])
    yield Bad("dim-negative-of-a-weight", one_op("Add", [2], [tensor("w", [-5])], ["x", "w"]), ["w", "-5", "negative"])
    yield Bad("rank-1000", one_op("Relu", [1] * 1000), ["x", "dimensions"])
    yield Bad("cycle", model(graph([node("Add", ["x", "b"], ["a"], "one"), node("Relu", ["a"], ["b"], "two")],
                                   [value("x", [2])], [value("b")])), ["cycle", "one"])
    yield Bad("operator-unknown", one_op("Frobnicate", [2]), ["Frobnicate", "the_Frobnicate"])
    yield Bad("operator-misspelt", one_op("Rellu", [2]), ["Rellu", "Relu"])
    yield Bad("domain-unknown", model(graph([node("Relu", ["x"], ["y"], "odd", "com.example")], [value("x", [2])],
                                            [value("y")]), domains=["com.example"]), ["com.example", "odd"])
    yield Bad("input-missing", one_op("Add", [2], inputs=["x"]), ["the_Add", "Add"])
    yield Bad("input-left-out", one_op("Add", [2], inputs=["x", ""]), ["the_Add", "Add"])
    yield Bad("input-never-made", one_op("Add", [2], inputs=["x", "nobody"]), ["nobody", "the_Add"])
    yield Bad("output-never-made", model(graph([node("Relu", ["x"], ["y"])], [value("x", [2])], [value("z")])), ["z"])
    yield Bad("no-nodes-no-output", model(graph([], [value("x", [2])])), ["output"])
    yield Bad("name-made-twice", model(graph([node("Relu", ["x"], ["y"], "one"), node("Abs", ["x"], ["y"], "two")],
                                             [value("x", [2])], [value("y")])), ["y", "one", "two"])
    yield Bad("function-recursive", recursive_function(), ["local::again", "call"])
    yield Bad("functions-blow-up", functions_that_double(40), ["inlin"])
    yield Bad("ifs-nested-20000", nested_ifs(20_000), ["nested"])
    yield Bad("tile-2^60", one_op("Tile", [2], [ints("r", 1 << 60)], ["x", "r"]), ["the_Tile"])
    yield Bad("expand-2^60", one_op("Expand", [1], [ints("r", 1 << 60)], ["x", "r"]), ["the_Expand"])
    yield Bad("range-of-step-0", one_op("Range", [2], [scalar("a", 0), scalar("b", 9), scalar("c", 0)], ["a", "b", "c"]),
              ["the_Range", "step"])
    yield Bad("range-of-2^60", one_op("Range", [2], [scalar("a", 0), scalar("b", 1 << 60), scalar("c", 1)],
                                      ["a", "b", "c"]), ["the_Range"])
    yield Bad("shapes-contradict", one_op("MatMul", [4, 8], [tensor("w", [9, 16])], ["x", "w"]),
              ["the_MatMul", "8", "9"])
    yield Bad("reshape-contradicts", one_op("Reshape", [4, 8], [ints("s", 5, -1)], ["x", "s"]), ["the_Reshape"])
    yield Bad("reshape-twice-open", one_op("Reshape", [4, 8], [ints("s", -1, -1)], ["x", "s"]), ["the_Reshape"])
    yield Bad("concat-contradicts", one_op("Concat", [4, 8], [tensor("w", [5, 9])], ["x", "w"], axis=0), ["the_Concat"])
    yield Bad("kernel-larger-than-image", one_op("Conv", [1, 3, 4, 4], [tensor("w", [8, 3, 9, 9])], ["x", "w"]),
              ["the_Conv"])
    yield Bad("stride-0", one_op("Conv", [1, 3, 8, 8], [tensor("w", [8, 3, 3, 3])], ["x", "w"], strides=[0, 0]),
              ["the_Conv", "strides"])
    yield Bad("axis-too-large", one_op("Softmax", [4, 8], axis=7), ["the_Softmax", "7"])
    yield Bad("dims-open", one_op("Relu", ["something", "anything"]), ["something", "anything", "--dim"], codes=(2,))
    yield Bad("opset-too-old", model(graph([node("Relu", ["x"], ["y"])], [value("x", [2])], [value("y")]), opset=3),
              ["opset 3", "convert"])
    terminal = "\x1b]0;pwned\x07\x1b[2J\r\n<script>alert(1)</script>\u202e"
    yield Bad("codes-in-names", model(graph([node("MatMul", ["x", "w"], ["y"], terminal)], [value("x", [4, 8])],
                                            [value("y")], [tensor("w", [9, 16])])), ["\\x1B]0;pwned\\x07"])
    yield Bad("codes-in-operators", one_op(terminal, [2]), ["\\x1B]0;pwned\\x07"])
    yield Bad("name-of-1-MB", one_op("N" * 1_000_000, [2]), ["NNN"])


def wrong_files():
    yield Bad("empty.onnx", b"", ["empty"])
    yield Bad("text.onnx", b"Just some notes about a model.\n" * 9, ["text file"])
    yield Bad("page.onnx", b"<!DOCTYPE html><html><body>404</body></html>", ["HTML"])
    yield Bad("zeros.onnx", bytes(100_000), ["damaged"])
    yield Bad("noise.onnx", random.Random(1).randbytes(100_000), ["damaged"])
    yield Bad("weights.pt", b"PK\x03\x04" + bytes(100), ["torch.onnx.export"])
    yield Bad("lfs.onnx", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", ["git lfs pull"])


def bad_models():
    for rows in (wrong_files(), cut(), mutated(), wrong_graphs()):
        yield from rows
