"""ONNX models crafted byte by byte, and an independent reading of them.

  onnx-cases.py good FILE             a small valid model
  onnx-cases.py sized FILE BYTES      a valid model of exactly BYTES
  onnx-cases.py big FILE BYTES        a valid model of about BYTES
  onnx-cases.py refused DIR           DIR/NAME.onnx and DIR/NAME.says (a regex)
  onnx-cases.py accepted DIR          DIR/NAME.onnx, odd but valid
  onnx-cases.py bounds FILE           the lengths at which FILE may end
  onnx-cases.py meta FILE...          onnx-meta against this program's own reading
  onnx-cases.py pickles               each refusal of output_slices
  onnx-cases.py mutants N             N spoiled models against onnx-probe
  onnx-cases.py slices N              N dicts of slices against onnx-probe

Standard library only. Fields: onnx.proto; bytes: protobuf's wire format.
"""
import base64
import codecs
import io
import json
import os
import pickle
import pickletools
import random
import struct
import subprocess
import sys

V, I64, LEN, I32 = 0, 1, 2, 5


# ---- writing ----

def varint(n):
  out = bytearray()
  n &= (1 << 64) - 1
  while n > 127:
    out.append(n & 127 | 128)
    n >>= 7
  out.append(n)
  return bytes(out)


def num(field, n):
  return varint(field << 3 | V) + varint(n)


def sub(field, *parts):
  body = b"".join(p.encode() if isinstance(p, str) else p for p in parts)
  return varint(field << 3 | LEN) + varint(len(body)) + body


def dim(n):
  return sub(1, num(1, n) if isinstance(n, int) else sub(2, n))


def shape(*dims):
  return sub(2, *(dim(d) for d in dims))


def value(field, name, dims, elem=1):
  return sub(field, sub(1, name), sub(2, sub(1, num(1, elem), shape(*dims))))


def tensor(field, name, raw, *more):
  return sub(field, num(1, len(raw) // 4), num(2, 1), sub(8, name), sub(9, raw), *more)


def prop(key, text):
  return sub(14, sub(1, key), sub(2, text))


SLICES = {"plan": slice(0, 990), "desire_state": slice(990, 998, None), "pad": slice(-2, None)}


def packed(slices, protocol=4):
  return codecs.encode(pickle.dumps(slices, protocol), "base64").decode()


IR = num(1, 8)
NAME = sub(2, "onnx-cases")
OPSET = sub(8, num(2, 13))
INS = value(11, "img", (1, 12, 128, 256), 2) + value(11, "calib", ("batch", 3))
OUTS = value(12, "outputs", (1, 1000))
NODE = sub(1, sub(1, "img"), sub(2, "outputs"), sub(4, "Relu"))
WEIGHT = tensor(5, "w", b"\1\2\3\4" * 4)
PROPS = prop("model_checkpoint", "0000/1") + prop("output_slices", packed(SLICES))


def graph(*parts):
  return sub(7, *parts)


GRAPH = graph(NODE, sub(2, "g"), WEIGHT, INS, OUTS)


def model(g=GRAPH, ir=IR, opset=OPSET, props=PROPS, rest=b""):
  return ir + NAME + g + opset + props + rest


def attribute(*parts):
  return sub(1, sub(5, sub(1, "a"), *parts))


def nest(levels):
  """An attribute with a graph with a node with an attribute, and so on."""
  g = sub(2, "inner")
  for _ in range(levels):
    g = sub(1, sub(5, sub(6, g)))
  return g


def external(field):
  return tensor(field, "x", b"", sub(13, sub(1, "location"), sub(2, "../../etc/passwd")), num(14, 1))


def refused():
  """name -> (bytes, what standard error must say)"""
  pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 12345\n"
  ext = "external data: .*must be in the file"
  big = varint(1 << 31)
  cases = {
    "empty": (b"", "is empty"),
    "pointer": (pointer, "is an LFS pointer for oid a{64}, size 12345: fetch it first"),
    "pointer-bad": (pointer.replace(b"12345", b"+12345"), "is an LFS pointer that must be refused"),
    "html": (b"<!DOCTYPE html>\n<html>" + b"x" * 4000, 'is an HTML or XML page.*begins "<!DOCTYPE html>'),
    "html-short": (b"\r\n <html>", "is an HTML or XML page"),
    "text": (b"Not found", 'is text, wanted an ONNX model: it begins "Not found"'),
    "json": (b'{"message": "gone"}', 'is text, wanted an ONNX model: it begins "{'),
    "gzip": (b"\x1f\x8b\x08\x00" + b"\xff" * 40, "is not an ONNX model: it begins with byte 0x1f"),
    "two-graphs": (model(rest=GRAPH), "a second graph at byte"),
    "no-graph": (model(g=b""), "has no graph"),
    "no-opset": (model(opset=b""), "has no opset_import"),
    "no-ir": (model(ir=b""), "has no ir_version"),
    "ir-0": (model(ir=num(1, 0)), "ir_version is 0, wanted 1 or more"),
    "ir-negative": (model(ir=num(1, -1)), "ir_version is -1, wanted 1 or more"),
    "ir-twice": (model(rest=IR), "a second ir_version at byte"),
    "no-input": (model(graph(NODE, OUTS)), "graph has no input"),
    "no-output": (model(graph(NODE, INS)), "graph has no output"),
    "key-twice": (model(rest=prop("model_checkpoint", "b")), "metadata_props has two entries model_checkpoint"),
    "field-0": (b"\x08\x08\x02\x00" + model(), "field number 0 at byte 2"),
    "trailing-0": (model(rest=b"\0"), "trailing bytes: field number 0"),
    "trailing-text": (model(rest=b"xx"), "trailing bytes: unknown field number 15"),
    "trailing-group": (model(rest=b"\x2b"), "trailing bytes: wire type 3"),
    **{f"wire-{w}": (model(graph(bytes([0x08 | w]) + INS + OUTS)), f"wire type {w} at byte .*wanted 0, 1, 2 or 5")
       for w in (3, 4, 6, 7)},
    "wire-other": (model(graph(NODE, sub(5, sub(1, b"\1\2")), INS, OUTS)), "graph.initializer.dims .* has wire type 2, wanted 0"),
    "overflow": (model(ir=b"\x08" + b"\x80" * 9 + b"\x02"), "varint at byte 1 overflows 64 bits"),
    "long-varint": (model(ir=b"\x08" + b"\x80" * 10 + b"\x01"), "varint at byte 1 is longer than 10 bytes"),
    "long-tag": (b"\x88\x80\x80\x80\x80\x00\x08" + model(), "varint at byte 0 is longer than 5 bytes"),
    "long-length": (b"\x08\x08\x12\x80\x80\x80\x80\x80\x00", "varint at byte 3 is longer than 5 bytes"),
    "cut-varint": (model(graph(sub(1, sub(4, "Relu") + b"\x80"), INS, OUTS)), "goes on after the end of its message"),
    "cut-tag": (model(graph(sub(1, b"\x22"), INS, OUTS)), "the message ends after the tag"),
    "past-end": (model()[:-1], r"truncated: metadata_props needs [0-9]+ bytes, [0-9]+ are left"),
    "truncated": ((IR + NAME + GRAPH)[:-20], rf"truncated: graph needs {len(GRAPH) - 3} bytes, {len(GRAPH) - 23} are left"),
    "nested-past-end": (model(graph(b"\x0a\x7f" + NODE[2:], INS, OUTS)), "graph.node needs 127 bytes, 11[0-9] are left"),
    "nested-length": (model(graph(sub(1, b"\x22\x50Relu"), INS, OUTS)), "graph.node.op_type needs 80 bytes, 4 are left"),
    "over-2gib": (IR + b"\x3a" + big, "(graph needs 2147483648 bytes, 0 are left|graph is 2147483648 bytes, the format's limit is 2 GiB)"),
    "packed-end": (model(graph(sub(5, sub(7, b"\5\x80")), INS, OUTS)), "the int64_data at byte .* end inside a number"),
    "packed-overflow": (model(graph(sub(5, sub(5, b"\x80" * 9 + b"\2")), INS, OUTS)), "a varint in the int32_data .* overflows 64 bits"),
    "packed-floats": (model(graph(sub(5, sub(4, b"abc")), INS, OUTS)), "float_data at byte .* is 3 bytes, no whole count of numbers"),
    "packed-doubles": (model(graph(sub(5, sub(10, b"abcd")), INS, OUTS)), "double_data at byte .* is 4 bytes, no whole count of numbers"),
    "inner-value": (model(graph(attribute(sub(6, sub(11, b"\x0a\5x"))), INS, OUTS)), "graph.node.attribute.g.input.name needs 5 bytes, 1 are left"),
    "opset-spoiled": (model(opset=sub(8, b"\x10")), "the message ends after the tag"),
    "deep": (model(graph(nest(50), INS, OUTS)), "is nested deeper than 100 messages"),
    "ext-initializer": (model(graph(external(5), INS, OUTS)), ext),
    "ext-location": (model(graph(tensor(5, "x", b"", num(14, 1)), INS, OUTS)), "data_location 1, wanted 0.*in the file"),
    "ext-sparse-values": (model(graph(sub(15, external(1)), INS, OUTS)), ext),
    "ext-sparse-indices": (model(graph(sub(15, external(2)), INS, OUTS)), ext),
    "ext-t": (model(graph(attribute(external(5)), INS, OUTS)), ext),
    "ext-tensors": (model(graph(attribute(external(10)), INS, OUTS)), ext),
    "ext-g": (model(graph(attribute(sub(6, external(5))), INS, OUTS)), ext),
    "ext-graphs": (model(graph(attribute(sub(11, attribute(external(5)))), INS, OUTS)), ext),
    "ext-sparse-tensor": (model(graph(attribute(sub(22, external(1))), INS, OUTS)), ext),
    "ext-sparse-tensors": (model(graph(attribute(sub(23, external(2))), INS, OUTS)), ext),
    "ext-function": (model(rest=sub(25, sub(7, sub(5, external(5))))), ext),
    "ext-function-default": (model(rest=sub(25, sub(11, external(5)))), ext),
    "ext-training": (model(rest=sub(20, sub(1, external(5)))), ext),
    "ext-training-algorithm": (model(rest=sub(20, sub(2, sub(1, sub(5, external(5)))))), ext),
    "name-long": (model(graph(value(11, "n" * 1025, (1,)), OUTS)), "graph.input.name at byte .* is 1025 bytes, at most 1024"),
    "name-latin1": (model(graph(value(11, b"caf\xe9", (1,)), OUTS)), "graph.input.name .* is not text"),
    "name-escape": (model(graph(value(11, "a\x1b[2J", (1,)), OUTS)), "graph.input.name .* is not text: .*control"),
    "name-nul": (model(graph(value(11, "a\0b", (1,)), OUTS)), "graph.input.name .* is not text"),
    "name-surrogate": (model(graph(value(11, b"\xed\xa0\x80", (1,)), OUTS)), "graph.input.name .* is not text"),
    "name-none": (model(graph(sub(11, sub(2, sub(1, num(1, 1)))), OUTS)), "graph input 1 has no name"),
    "name-twice": (model(graph(INS, value(11, "img", (1,)), OUTS)), "graph input img: the name is there twice"),
    "output-twice": (model(graph(INS, OUTS, OUTS)), "graph output outputs: the name is there twice"),
    "type-none": (model(graph(sub(11, sub(1, "x")), OUTS)), "graph input x has no type"),
    "type-sequence": (model(graph(sub(11, sub(1, "x"), sub(2, sub(4, sub(1)))), OUTS)), "graph input x is not a tensor"),
    "type-both": (model(graph(sub(11, sub(1, "x"), sub(2, sub(1, num(1, 1)), sub(9))), OUTS)), "the type at byte [0-9]+ is of two kinds"),
    "type-twice": (model(graph(sub(11, sub(1, "x"), sub(2, sub(1, num(1, 1))) * 2), OUTS)), "a second graph.input.type"),
    "elem-none": (model(graph(sub(11, sub(1, "x"), sub(2, sub(1, shape(1)))), OUTS)), "graph input x has no elem_type"),
    "elem-0": (model(graph(value(11, "x", (1,), 0), OUTS)), "graph input x: elem_type is 0"),
    "elem-33-bits": (model(graph(value(11, "x", (1,), 1 << 32 | 1), OUTS)), "graph input x: elem_type is 4294967297"),
    "dim-negative": (model(graph(value(11, "x", (1, -1)), OUTS)), "graph input x: dimension 2 is -1, wanted 0 or more"),
    "dim-both": (model(graph(sub(11, sub(1, "x"), sub(2, sub(1, num(1, 1), sub(2, sub(1, num(1, 3), sub(2, "n")))))), OUTS)),
                 "the dimension at byte [0-9]+ has both a number and a name"),
    "dims-9": (model(graph(value(11, "x", (1,) * 9), OUTS)), "graph input x has more than 8 dimensions"),
    "inputs-257": (model(graph(*(value(11, f"i{i}", (1,)) for i in range(257)), OUTS)), "more than 256 inputs"),
    "props-1025": (model(rest=b"".join(prop(f"k{i}", "") for i in range(1025))), "metadata_props has more than 1024 entries"),
    "key-long": (model(rest=prop("k" * 1025, "")), "metadata_props.key at byte .* is 1025 bytes, at most 1024"),
    "value-long": (model(rest=prop("k", "v" * (1 << 20 | 1))), "metadata_props.value .* is 1048577 bytes, at most 1048576"),
    "value-latin1": (model(rest=prop("k", b"\xff")), "metadata_props.value .* is not text"),
    "raw-twice": (model(graph(tensor(5, "x", b"abcd", sub(9, b"efgh")), INS, OUTS)), "a second graph.initializer.raw_data"),
    "floats-twice": (model(graph(sub(5, sub(4, b"abcd") * 2), INS, OUTS)), "a second graph.initializer.float_data"),
  }
  return cases


def accepted():
  """name -> bytes: odd, but every reader agrees about them"""
  return {
    "plain": model(),
    "no-checkpoint": model(props=prop("output_slices", packed(SLICES))),
    "props-first": PROPS + IR + OPSET + GRAPH,
    "value-before-key": model(props=sub(14, sub(2, packed(SLICES)), sub(1, "output_slices"))),
    "other-prop": model(rest=prop("author", "x\ny") + sub(14)),
    "utf8": model(graph(value(11, "caf\u00e9 \U0001f440 \"q\\", (1,)), OUTS)),
    "scalar": model(graph(value(11, "s", ()), sub(11, sub(1, "t"), sub(2, sub(1, num(1, 10)))), OUTS)),
    "dims-8": model(graph(value(11, "x", (1, 2, 3, 4, 255, 256, 65536, 1 << 40)), OUTS)),
    "large-dim": model(graph(value(11, "x", ((1 << 63) - 1, 1 << 31, (1 << 31) - 1)), OUTS)),
    "unknown-fields": model(graph(NODE, INS, OUTS, num(99, 5), sub(1000, "x"), bytes([0xfd, 6]) + b"abcd"), rest=num(27, 1)),
    "long-form-varint": model(ir=b"\x08\x88\x80\x00"),
    "deep-enough": model(graph(nest(30), INS, OUTS)),
    "empty-bodies": model(graph(sub(1), sub(5), INS, OUTS)),
    "location-default": model(graph(tensor(5, "w", b"abcd", num(14, 0)), INS, OUTS)),
    "ir-2": num(1, 2) + GRAPH + PROPS,
    "long-name": model(graph(value(11, "n" * 1024, (1,)), OUTS)),
    "floats": model(graph(attribute(b"\x3d\0\0\x80\x3f" * 3, num(8, 3), num(20, 6)), INS, OUTS)),
    "packed": model(graph(sub(5, sub(7, b"\xff" * 9 + b"\1\0"), sub(4, b"abcd")), sub(5, sub(10, b"abcdefgh")), INS, OUTS)),
    "inner-types": model(graph(sub(13, sub(1, "v"), sub(2, sub(4, sub(1, sub(1, num(1, 1), shape(-1, "n")))))), INS, OUTS)),
    "inner-inputs": model(graph(attribute(sub(6, value(11, "img", (1,)), sub(11, sub(1, "x")))), INS, OUTS)),
    "no-slices-in-dict": model(props=prop("output_slices", packed({}))),
  }


# ---- reading, as protobuf does: the last wins, messages merge ----

def fields(b):
  i = 0

  def number():
    nonlocal i
    n = shift = 0
    while True:
      c = b[i]
      i += 1
      n |= (c & 127) << shift
      shift += 7
      if c < 128:
        return n & (1 << 64) - 1
      if shift >= 70:
        raise ValueError("varint")
  while i < len(b):
    at = i
    tag = number()
    wire = tag & 7
    if wire == V:
      yield tag >> 3, wire, number(), at
    else:
      size = {LEN: None, I64: 8, I32: 4}[wire]
      size = number() if size is None else size
      if size > len(b) - i:
        raise ValueError("length")
      yield tag >> 3, wire, b[i:i + size], at
      i += size


def merged(b, field):
  return b"".join(v for f, w, v, _ in fields(b) if f == field and w == LEN)


def last(b, field, wire, default):
  return [default, *(v for f, w, v, _ in fields(b) if f == field and w == wire)][-1]


def signed(n):
  return n - (1 << 64) if n >> 63 else n


def read_dim(b):
  n = 0
  for f, w, v, _ in fields(b):    # a oneof: a later name unsets the number
    n = signed(v) if f == 1 and w == V else 0 if f == 2 and w == LEN else n
  return n


def read(b):
  g = merged(b, 7)
  props = {}
  for f, w, v, _ in fields(b):
    if f == 14 and w == LEN:
      props.setdefault(last(v, 1, LEN, b"").decode(), last(v, 2, LEN, b"").decode())
  shapes, types = {}, {}
  for side in (11, 12):
    shapes[side], types[side] = {}, {}
    for f, w, v, _ in fields(g):
      if f == side and w == LEN:
        name, kind = last(v, 1, LEN, b"").decode(), merged(merged(v, 2), 1)
        shapes[side][name] = [read_dim(d) for df, dw, d, _ in fields(merged(kind, 2)) if df == 1 and dw == LEN]
        types[side][name] = last(kind, 1, V, 0) & (1 << 32) - 1
  return props, shapes, types


class OnlySlices(pickle.Unpickler):
  def find_class(self, module, name):
    if (module, name) in (("builtins", "slice"), ("__builtin__", "slice")):
      return super().find_class(module, name)
    raise pickle.UnpicklingError(f"{module}.{name}")


class OnlySlicesInPython(pickle._Unpickler):  # the other implementation, stricter about frames
  def find_class(self, module, name):
    if (module, name) in (("builtins", "slice"), ("__builtin__", "slice")):
      return pickle._Unpickler.find_class(self, module, name)
    raise pickle.UnpicklingError(f"{module}.{name}")


def triple(s):
  return [s.start, s.stop, s.step]


def bounds(b):
  """Where a model may end: after a whole top-level field, all there that must be."""
  seen, out = set(), []
  for f, _, _, at in fields(b):
    if {1, 7, 8} <= seen:
      out.append(at)
    seen.add(f)
  return out + [len(b)]


def meta(path):
  with open(path, "rb") as f:
    props, shapes, types = read(f.read())
  text, data = (subprocess.run(["onnx-meta", *option, path], stdout=subprocess.PIPE, check=True).stdout for option in ([], ["-p"]))
  text = text.decode()
  slices = OnlySlices(io.BytesIO(codecs.decode(props["output_slices"].encode(), "base64"))).load()
  got = json.loads(text)
  want = {
    "model_checkpoint": props.get("model_checkpoint"),
    "output_slices": {k: triple(v) for k, v in slices.items()},
    "input_shapes": shapes[11], "output_shapes": shapes[12],
    "input_types": types[11], "output_types": types[12],
  }
  # as text: order counts too
  assert json.dumps(got) == json.dumps(want), f"{got}\n{want}"
  assert text.count("\n") == 1 and text.endswith("\n")
  want = {
    "model_checkpoint": want["model_checkpoint"], "output_slices": slices,
    "input_shapes": {k: tuple(v) for k, v in shapes[11].items()},
    "output_shapes": {k: tuple(v) for k, v in shapes[12].items()},
  }
  assert data[:2] == b"\x80\x04" and data[-1:] == b"."
  for how in (OnlySlices, OnlySlicesInPython):
    got = how(io.BytesIO(data)).load()
    assert got == want, f"{got}\n{want}"
    assert repr(got) == repr(want), f"{got!r}\n{want!r}"
  ops = {op.name for op, _, _ in pickletools.genops(data)}
  assert not ops & {"FRAME", "MEMOIZE"} and ops <= {
    "PROTO", "EMPTY_DICT", "MARK", "SHORT_BINUNICODE", "BINUNICODE", "NONE", "STACK_GLOBAL", "BININT1", "BININT2", "BININT", "LONG1",
    "EMPTY_TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "TUPLE", "REDUCE", "SETITEMS", "STOP"}, ops


# ---- the parsers against this program ----

def probe(what, data):
  got = subprocess.run(["onnx-probe", what], input=data, stdout=subprocess.PIPE, check=True).stdout
  return got.decode().splitlines()


def spoil(rng, b, pieces):
  b = bytearray(b)
  for _ in range(rng.choice((1, 1, 1, 2, 4))):
    at = rng.randrange(len(b)) if b else 0
    match rng.randrange(6):
      case 0 if b: b[at] ^= 1 << rng.randrange(8)
      case 1 if b: b[at] = rng.randrange(256)
      case 2: b[at:at] = rng.choice(pieces)
      case 3: del b[at:at + rng.choice((1, 1, 2, 8))]
      case 4: b[at:at] = bytes(b[(x := rng.randrange(len(b) + 1)):x + rng.randrange(40)])
      case 5: b[at:at + 1] = rng.choice(pieces)
  return bytes(b)


def mutants(n):
  rng = random.Random(1)
  seeds = list(accepted().values()) + [c for c, _ in refused().values() if len(c) < 5000]
  pieces = [bytes([i]) for i in range(256)] + [WEIGHT, NODE, OUTS, OPSET, IR, prop("k", "v"), num(14, 1), b"\xff" * 9, b"\x80\x01"]
  cases = seeds + [spoil(rng, rng.choice(seeds), pieces) for _ in range(n)]
  lines = probe("walk", b"".join(struct.pack("<I", len(c)) + c for c in cases))
  assert len(lines) == len(cases), f"{len(lines)} answers of {len(cases)}"
  good = 0
  for case, line in zip(cases, lines):
    assert line.startswith(("ok ", "no ")), f"{line}: {case.hex()}"
    if line.startswith("ok "):
      good += 1
      got = json.loads(line[3:])
      props, shapes, _ = read(case)
      want = {"inputs": shapes[11], "outputs": shapes[12], "checkpoint": props.get("model_checkpoint"), "slices": props.get("output_slices")}
      assert json.dumps(got) == json.dumps(want), f"{case.hex()}\n{got}\n{want}"
  print(f"{len(cases)} models, {good} accepted and read alike")
  assert good > len(cases) // 50


def some_slices(rng):
  def number():
    top = rng.choice((0, 1, 7, 8, 15, 16, 31, 32, 40, 47, 48, 55, 56, 63))
    return rng.choice((None, 0, rng.randrange(2000), rng.randrange(-2000, 0), rng.randrange(1 << top) if top else 0,
                       -rng.randrange(1 << top) - 1 if top else -1, (1 << top) - 1, -(1 << top)))

  def one():
    step = number()
    return slice(number(), number(), None if step == 0 or rng.randrange(3) else step)
  letters = [*"abcxyz_", *"ABZ019 .\"'\\/", "\u00a1", "\u00e9", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"]
  shared = one()
  return {"".join(rng.choices(letters, k=rng.choice((1, 2, 5, 20, 300)))): rng.choice((one(), one(), shared))
          for _ in range(rng.choice((0, 1, 2, 5, 12, 60)))}


def both(data):
  """What Python's two unpicklers read: a value as text, or None where either refuses."""
  out = []
  for how in (OnlySlices, OnlySlicesInPython):
    try:
      got = how(io.BytesIO(data)).load()
      assert type(got) is dict and all(type(k) is str and type(v) is slice for k, v in got.items())
      assert all(x is None or type(x) is int for v in got.values() for x in triple(v))
      out.append(json.dumps({k: triple(v) for k, v in got.items()}))
    except Exception:     # an unpickler may raise anything
      return None
  return out[0] if out[0] == out[1] else None


# A pickle, or a text where it is base64, and what is said of it
PICKLES = [
  (b'cos\nsystem\n(Vid\ntR.', 'names os.system, which could run code: only builtins.slice'),
  (b'cbuiltins\ngetattr\n.', 'names builtins.getattr'),
  (b'\x80\x04c__builtin__\nslice\n.', 'names __builtin__.slice'),
  (b'\x8c\x08builtins\x8c\x0aslice.step\x93.', 'names builtins.slice.step'),
  (b'\x8c\x08builtinsN\x93.', 'STACK_GLOBAL takes a string and None'),
  (b'(ios\nsystem\n.', 'opcode INST could run code'),
  (b'(cos\nsystem\no.', 'names os.system'),
  (b'(o.', 'opcode OBJ could run code'),
  (b'))\x81.', 'opcode NEWOBJ could run code'),
  (b'}Va\ncbuiltins\nslice\nNRs.', 'slice gets None, wanted a tuple'),
  (b'))}\x92.', 'opcode NEWOBJ_EX could run code'),
  (b'}b.', 'opcode BUILD could run code'),
  (b'\x82\x01.', 'opcode EXT1 could run code'),
  (b'\x83\x01\x00.', 'opcode EXT2 could run code'),
  (b'\x84\x01\x00\x00\x00.', 'opcode EXT4 could run code'),
  (b'Pid\n.', 'opcode PERSID could run code'),
  (b'NQ.', 'opcode BINPERSID could run code'),
  (b'\x97.', 'opcode NEXT_BUFFER could run code'),
  (b'}0.', 'opcode 0x30 has no place'),
  (b'C\x01a.', 'opcode 0x43 has no place'),
  (b'\x80\x06}.', 'protocol 6, at most 5'),
  (b'\x80\x04\x80\x04}.', 'PROTO is not the first'),
  (b'}.N', '1 bytes follow STOP'),
  (b'}N.', '2 values are left, wanted one dict'),
  (b'N.', 'the pickle is None, wanted a dict'),
  (b'].', 'the pickle is a list, wanted a dict'),
  (b'.', '0 values are left'),
  (b'}', 'truncated: no STOP'),
  (b'}}.', 'a second dict'),
  (b'}(K\x01NtVx\ns.', 'a key is a tuple, wanted a string'),
  (b'}K\x01Ns.', 'a key is an integer, wanted a string'),
  (b'}Va\nNs.', 'a is None, wanted a slice'),
  (b'}Va\nI01\ns.', 'a is a boolean, wanted a slice'),
  (b'}Va\n]s.', 'a is a list, wanted a slice'),
  (b'}Va\ncbuiltins\nslice\ns.', 'a is the slice type, wanted a slice'),
  (b'}Va\ncbuiltins\nslice\n(cbuiltins\nslice\ntRs.', 'a tuple holds the slice type'),
  (b'}Va\ncbuiltins\nslice\n)Rs.', 'slice gets a tuple of 0, wanted one to three'),
  (b'}Va\ncbuiltins\nslice\n(NNNNtRs.', 'slice gets a tuple of 4, wanted one to three'),
  (b'}Va\ncbuiltins\nslice\n(\x88tRs.', 'a tuple holds a boolean'),
  (b'}Va\ncbuiltins\nslice\n(NNK\x00tRs.', 'a slice has step 0'),
  (b'}Va\nVb\n(K\x01tRs.', 'REDUCE calls a string'),
  (b'}(Va\ncbuiltins\nslice\n(K\x01tRVa\ncbuiltins\nslice\n(K\x01tRu.', 'the key a is there twice'),
  (b'}(Va\nu.', 'a key without a value'),
  (b'}V\nNs.', 'a key is empty'),
  (b'Va\n(u.', 'an opcode finds a string, wanted a dict'),
  (b'(s.', 'an opcode finds 0 values, wanted 3'),
  (b'u.', 'an opcode finds no mark'),
  (b'}q\x00h\x00.', 'a dict is fetched from the memo'),
  (b')q\x00h\x00.', 'a tuple is fetched from the memo'),
  (b'h\x00.', 'memo slot 0 was never written'),
  (b'Va\nq\x00Nq\x00.', 'memo slot 0 is written twice'),
  (b'Va\nr\xff\xff\x00\x00.', 'memo slot 65535, at most 8192'),
  (b'g-1\n.', 'memo slot -1'),
  (b'g 1\n.', '" 1" is not a plain decimal'),
  (b'I 1\n.', '" 1" is not a plain decimal integer'),
  (b'I1_0\n.', '"1_0" is not a plain decimal integer'),
  (b'I0x1\n.', '"0x1" is not a plain decimal integer'),
  (b'I-0\n.', '"-0" is not a plain decimal integer'),
  (b'I007\n.', '"007" is not a plain decimal integer'),
  (b'I\n.', '"" is not a plain decimal integer'),
  (b'I9223372036854775808\n.', 'an integer has more than 64 bits'),
  (b'L5\n.', 'a long integer does not end in L'),
  (b'\x8a\x09\x01\x01\x01\x01\x01\x01\x01\x01\x01.', 'an integer has more than 64 bits'),
  (b'Va\\x41\n.', 'a backslash in a string'),
  (b'V\\u12g4\n.', 'not followed by hex digits'),
  (b'V\\U00110000\n.', 'beyond U+10FFFF'),
  (b'V\\ud800\n.', 'a string is not UTF-8'),
  (b'\x8c\x01\xff.', 'a string is not UTF-8'),
  (b'X\x01\x00\x00\x00\x00.', 'a string is not UTF-8 without control'),
  (b'X\xff\xff\xff\xff.', 'truncated: 4294967295 bytes needed, 1 are left'),
  (b'Vabc', 'truncated: a line without end'),
  (b'\x95\x05\x00\x00\x00\x00\x00\x00\x00}.', 'truncated: a frame needs 5 bytes, 2 are left'),
  (b'\x95\x01\x00\x00\x00\x00\x00\x00\x00K\x01.', 'an opcode reads across the end of its frame'),
  (b'\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x95\x01\x00\x00\x00\x00\x00\x00\x00}.', 'a frame begins inside another'),
  ("", "empty"),
  ("fS4", "base64 is cut off: 3 digits and 0 of ="),
  ("fS4==", "character 5 is no base64"),
  ("fS4=fS4=", "character 5 is no base64"),
  ("f=S4", "character 2 is no base64"),
  ("fS 4=", "character 3 is no base64"),
  ("fS4-", "character 4 is no base64"),
  ("fS5=", "base64 ends in bits that are not zero"),
  ("A" * (1 << 20 | 4), "longer than 1048576 bytes"),
  (b"(" * 5000, "more than 4096 values on the stack"),
  (b"X\1\4\0\0" + b"a" * 1025 + b".", "a string of 1025 bytes, at most 1024"),
  (b"]" + b"Na" * 40000 + b".", "more than 65536 opcodes"),
  (pickle.dumps({str(i): slice(i) for i in range(1025)}), "more than 1024 slices"),
]
# pickles that Python's pickler does not write, but that are plain
PLAIN = [
  (b"(dVa\ncbuiltins\nslice\n(K\x00K\x05NtRs.", {"a": [0, 5, None]}),
  (b"}\x94(Va\ncbuiltins\nslice\nq\x05(K\x05tRVb\nh\x05(NNK\x02tRu.", {"a": [None, 5, None], "b": [None, None, 2]}),
  (b"\x80\x02}(X\x01\0\0\0a\x8c\x0b__builtin__\x8c\x05slice\x93J\xff\xff\xff\xff\x8a\x00N\x87Ru.", {"a": [-1, 0, None]}),
  (b"I5\n.", None),
]


def pickles():
  wrong = []
  texts = [p if isinstance(p, str) else base64.b64encode(p).decode() for p, _ in PICKLES]
  for (p, want), line in zip(PICKLES, probe("slices", "".join(t + "\n" for t in texts).encode())):
    if not line.startswith("no output_slices: ") or want not in line:
      wrong.append(f"{p[:60]!r}: {line}, wanted {want}")
  for (p, want), line in zip(PLAIN, probe("slices", b"".join(base64.b64encode(p) + b"\n" for p, _ in PLAIN))):
    if (json.loads(line[3:]) if line.startswith("ok ") else None) != want:
      wrong.append(f"{p!r}: {line}, wanted {want}")
  assert not wrong, "\n".join(wrong)


def slices(n):
  rng = random.Random(2)
  whole = []
  for _ in range(n):
    d, protocol = some_slices(rng), rng.randrange(6)
    whole.append(rng.choice((pickle.dumps, pickle._dumps))(d, protocol))
    if rng.randrange(2):
      whole[-1] = pickletools.optimize(whole[-1])
  small = [w for w in whole if len(w) < 400]
  pieces = [bytes([o]) for o in b"(.}])Nt\x85\x86\x87lds\x94uaeR\x93cKMJIL\x8aqrphjgXV\x8c\x95\x80bio\x81\x82\x97PQ"]
  pieces += [b"cbuiltins\nslice\n", b"c__builtin__\nslice\n", b"cos\nsystem\n", b"I1\n", b"L5L\n", b"I01\n", b"\x88", b"Va\n", b"\x8c\x01a",
             b"K\x01", b"h\x00", b"q\x00", b"\x80\x04", b"\x80\x02", b"\x95" + struct.pack("<Q", 3), b"I 1\n", b"I1_0\n", b"L1\n", b"I-0\n"]
  spoiled = [spoil(rng, rng.choice(small), pieces) for _ in range(4 * n)]
  prefixes = [p for w in small[:40] for p in (w[:i] for i in range(len(w)))]
  cases = whole + spoiled + prefixes
  lines = probe("slices", b"".join(base64.b64encode(c) + b"\n" for c in cases))
  assert len(lines) == len(cases), f"{len(lines)} answers of {len(cases)}"
  good = 0
  for i, (case, line) in enumerate(zip(cases, lines)):
    if line.startswith("ok "):
      good += i >= n
      assert json.dumps(json.loads(line[3:])) == both(case), f"{case!r}\n{line}\n{both(case)}"
    else:
      assert line.startswith("no output_slices: "), f"{case!r}\n{line}"
      assert i >= n, f"refused, though Python wrote it: {case!r}\n{line}"
    assert i < len(whole) + len(spoiled) or line.startswith("no "), f"a prefix was accepted: {case!r}"
  print(f"{n} dicts read alike, {len(spoiled)} spoiled ones: {good} accepted and read alike; {len(prefixes)} prefixes refused")
  assert good > n // 50


def big(path, size):
  """Weights in tensors of 4 MiB, after a real header: what a walker jumps over."""
  chunk = random.Random(3).randbytes(4 << 20)
  tensors = [tensor(5, f"w{i}", chunk) for i in range(max(1, size // len(chunk)))]
  body = [sub(1, sub(1, "img"), sub(2, f"t{i}"), sub(4, "Relu")) for i in range(500)] + tensors + [INS, OUTS]
  with open(path, "wb") as f:
    f.write(IR + NAME + varint(7 << 3 | LEN) + varint(sum(map(len, body))))
    f.writelines(body)
    f.write(OPSET + PROPS)


def sized(size):
  """A valid model of exactly that size."""
  for spare in range(20):
    b = model(rest=sub(6, b"d" * (size - len(model()) - spare)))
    if len(b) == size:
      return b
  raise ValueError(size)


def main(what, *args):
  if what == "good":
    with open(args[0], "wb") as f:
      f.write(model())
  elif what == "sized":
    with open(args[0], "wb") as f:
      f.write(sized(int(args[1])))
  elif what == "big":
    big(args[0], int(args[1]))
  elif what in ("refused", "accepted"):
    for name, case in (refused if what == "refused" else accepted)().items():
      with open(f"{args[0]}/{name}.onnx", "wb") as f:
        f.write(case[0] if what == "refused" else case)
      if what == "refused":
        with open(f"{args[0]}/{name}.says", "w", encoding="utf-8") as f:
          f.write(case[1])
  elif what == "bounds":
    with open(args[0], "rb") as f:
      print(*bounds(f.read()))
  elif what == "meta":
    for path in args:
      meta(path)
  elif what == "pickles":
    pickles()
  elif what == "mutants":
    mutants(int(args[0]))
  elif what == "slices":
    slices(int(args[0]))
  else:
    sys.exit(__doc__)


if __name__ == "__main__":
  main(*sys.argv[1:])
