"""Writes ONNX files without the onnx package: field numbers of onnx-ml.proto, and nothing is checked, so that files can
be as wrong as a test wants them."""

FLOAT, INT64, BOOL = 1, 7, 9


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(n)


def data(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def attribute(name, value):
    """An int, a list of ints, a string, or bytes: a graph."""
    if isinstance(value, int):
        return data(1, name) + number(3, value) + number(20, 2)
    if isinstance(value, list):
        return data(1, name) + b"".join(number(8, v) for v in value) + number(20, 7)
    if isinstance(value, str):
        return data(1, name) + data(4, value) + number(20, 3)
    return data(1, name) + data(6, value) + number(20, 5)


def node(op, inputs, outputs, name="", domain="", **attributes):
    out = b"".join(data(1, i) for i in inputs) + b"".join(data(2, o) for o in outputs)
    out += data(3, name) + data(4, op) + data(7, domain)
    return out + b"".join(data(5, attribute(k, v)) for k, v in attributes.items())


def metadata(**entries):
    """Fields to put behind a node's: its metadata_props, `_` for `.` in their keys."""
    return b"".join(data(9, data(1, k) + data(2, v)) for k, v in entries.items())


def value(name, dims=None, dtype=FLOAT):
    """A graph's input or output; dims are ints or names, None: of any shape."""
    tensor = number(1, dtype)
    if dims is not None:
        tensor += data(2, b"".join(data(1, data(2, d) if isinstance(d, str) else number(1, d)) for d in dims))
    return data(1, name) + data(2, data(1, tensor))


def tensor(name, dims, dtype=FLOAT, integers=None, raw=None):
    """An initializer; without integers or raw its values are left out of the file."""
    out = b"".join(number(1, d) for d in dims) + number(2, dtype) + data(8, name)
    if raw is not None:
        return out + data(9, raw)
    if integers is not None:
        return out + data(7, b"".join(varint(i) for i in integers))
    return out + data(13, data(1, "location") + data(2, "left-out")) + number(14, 1)


def graph(nodes, inputs=(), outputs=(), initializers=(), name="g"):
    return (b"".join(data(1, n) for n in nodes) + data(2, name) + b"".join(data(5, i) for i in initializers) +
            b"".join(data(11, i) for i in inputs) + b"".join(data(12, o) for o in outputs))


def function(name, domain, inputs, outputs, nodes):
    return (data(1, name) + b"".join(data(4, i) for i in inputs) + b"".join(data(5, o) for o in outputs) +
            b"".join(data(7, n) for n in nodes) + data(10, domain) + data(9, number(2, 17)))


def model(body, opset=17, ir=8, domains=(), functions=()):
    out = number(1, ir) + data(2, "test") + data(7, body) + data(8, number(2, opset))
    out += b"".join(data(8, data(1, d) + number(2, 1)) for d in domains)
    return out + b"".join(data(25, f) for f in functions)
