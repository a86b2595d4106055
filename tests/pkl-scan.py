"""The cases of pkl-scan, and Python's pickletools as its oracle.

  hostile DIR          writes DIR/NAME.pkl; prints NAME and what must be said
  honest DIR           writes DIR/NAME.pkl, each to be accepted
  compare FILE...      pkl-scan and pickletools must list the same imports
  generate N STEP      the same of N pickles, both protocols, in and out of band
  prefixes FILE        every prefix of FILE must be refused
  wrap BYTES FILE      an artifact that holds one string of BYTES, sparse
  peak COMMAND...      prints the most memory that COMMAND had, in KiB
"""
import collections
import datetime
import decimal
import enum
import fractions
import io
import os
import pickle
import pickletools
import random
import resource
import struct
import subprocess
import sys


def pkl_scan(data=None, path=None):
    """Status, the imports, standard error."""
    done = subprocess.run(["pkl-scan"] + ([path] if path else []), input=data,
                          capture_output=True, check=False)
    got = {}
    for line in done.stdout.decode().splitlines():
        count, module, name = line.split(" ")
        got[module, name] = int(count)
    return done.returncode, got, done.stderr.decode()


# ---- the oracle ----

def opcodes_of(data):
    """The opcodes of an artifact, by the rule of those who load them."""
    size = struct.unpack("<q", data[:8])[0] if len(data) >= 10 else 0
    if data[8:10] == b"\x80\x05" and 0 < size <= len(data) - 8:
        return data[8:8 + size]
    return data


def oracle(data):
    """The imports, from what comes before each STACK_GLOBAL."""
    got, strings, memo, newest = collections.Counter(), [], [], None
    for op, arg, _ in pickletools.genops(opcodes_of(data)):
        if op.name in ("SHORT_BINUNICODE", "BINUNICODE"):
            newest = arg
            strings.append(arg)
        elif op.name in ("BINGET", "LONG_BINGET"):
            newest = memo[arg]
            strings.append(newest)
        elif op.name == "MEMOIZE":
            memo.append(newest)
        elif op.name == "STACK_GLOBAL":
            got[tuple(strings[-2:])] += 1
            newest = None
        else:
            newest = None
    return dict(got)


def compare(data, what):
    status, got, said = pkl_scan(data)
    want = oracle(data)
    if status != 0 or got != want or said:
        sys.exit(f"{what}: status {status}, {said}got {got}, wanted {want}")


# ---- generated pickles ----

class Color(enum.Enum):
    RED = 1
    BLUE = "b"


class Plain:
    pass


class Slots:
    __slots__ = ("a", "b")


class Reduced:
    def __init__(self, *args):
        self.args = args

    def __reduce__(self):
        return Reduced, self.args


class Bag(list):
    pass


class Table(dict):
    pass


class State:
    def __setstate__(self, state):
        self.state = state

    def __getstate__(self):
        return self.__dict__.get("state", (1, 2))


Point = collections.namedtuple("Point", "x y")


class Pickler(pickle.Pickler):
    def reducer_override(self, obj):
        return (type(obj), (obj.value,)) if isinstance(obj, enum.Enum) else NotImplemented


class PurePickler(pickle._Pickler):
    def reducer_override(self, obj):
        return (type(obj), (obj.value,)) if isinstance(obj, enum.Enum) else NotImplemented


class Maker:
    """A random value; some are used again, so that the memo is."""

    def __init__(self, rng, buffers):
        self.rng, self.buffers, self.made, self.left = rng, buffers, [], rng.randrange(1, 400)

    def text(self):
        kind = self.rng.randrange(5)
        if kind == 0:
            return self.rng.choice(["os", "system", "tinygrad.dtype", "DType", "", "a b", "ä"])
        n = self.rng.choice([1, 5, 30, 255, 256, 300, 70000]) if kind == 1 else self.rng.randrange(20)
        return "".join(self.rng.choices("abcdefgXYZ_.0123é \n", k=n))

    def leaf(self):
        rng = self.rng
        return rng.choice([
            lambda: None, lambda: True, lambda: False, self.text, self.text,
            lambda: rng.randrange(256), lambda: rng.randrange(65536), lambda: -rng.randrange(2**31),
            lambda: rng.getrandbits(rng.randrange(1, 2000)), lambda: -rng.getrandbits(70),
            rng.random, lambda: float("inf"), lambda: rng.randbytes(rng.choice([0, 3, 255, 256, 70000])),
            lambda: bytearray(rng.randbytes(rng.choice([0, 3, 300, 70000]))),
            lambda: slice(rng.randrange(9), None), lambda: complex(1, rng.random()), lambda: range(rng.randrange(9)),
            lambda: rng.choice(list(Color)), lambda: rng.choice([Plain, Slots, Color, Point, Bag]),
            lambda: fractions.Fraction(rng.randrange(9), 7), lambda: decimal.Decimal(rng.randrange(99)) / 7,
            lambda: datetime.date(2026, 1, 1 + rng.randrange(28)),
            lambda: pickle.PickleBuffer(bytearray(rng.randbytes(rng.randrange(300)))) if self.buffers else b"",
        ])()

    def items(self, depth):
        n = self.rng.choice([0, 1, 2, 3, 4, 9]) if self.rng.random() < 0.98 else self.rng.choice([1000, 1001, 2500])
        return [self.value(depth + 1) for _ in range(min(n, max(self.left, 0)))] if n < 1000 else [self.rng.randrange(9)] * n

    def value(self, depth=0):
        self.left -= 1
        if self.made and self.rng.random() < 0.2:
            return self.rng.choice(self.made)
        got = self.leaf() if depth > 5 or self.rng.random() < 0.5 else self.inner(depth)
        if not isinstance(got, pickle.PickleBuffer):
            self.made.append(got)
        return got

    def keys(self, items):
        return {i if self.rng.random() < 0.5 else f"k{i}": v for i, v in enumerate(items)}

    def inner(self, depth):
        items = self.items(depth)
        kind = self.rng.randrange(13)
        if kind < 2:
            return tuple(items)
        if kind < 4:
            return items
        if kind < 6:
            return self.keys(items)
        if kind == 6:
            return collections.OrderedDict(self.keys(items))
        if kind == 7:
            return collections.deque(items)
        if kind == 8:
            return Reduced(*items)
        if kind == 9:
            return Point(items, len(items))
        if kind == 10:
            bag = Bag(items)
            bag.note = len(items)
            return bag
        if kind == 11:
            table = Table(self.keys(items))
            table.self = self.rng.choice([table, None])
            return table
        made = self.rng.choice([Plain, Slots, State])()
        if isinstance(made, State):
            made.state = tuple(items)
        else:
            made.a = items
        return made


def artifact(value, protocol, out_of_band, pure):
    f, buffers = io.BytesIO(), []
    kind = PurePickler if pure else Pickler
    kind(f, protocol=protocol, buffer_callback=buffers.append if out_of_band else None).dump(value)
    if not out_of_band:
        return f.getvalue()
    raws = [b.raw() for b in buffers]
    return struct.pack("<q", f.tell()) + f.getvalue() + b"".join(struct.pack("<q", len(r)) + r for r in raws)


def generate(n, step):
    seen = set()
    for i in range(0, n, step):
        rng = random.Random(i)
        out_of_band = i % 3 == 2
        protocol = 5 if out_of_band or i % 3 == 1 else 4
        data = artifact(Maker(rng, out_of_band).value(), protocol, out_of_band, i % 7 == 0)
        seen.update(op.name for op, _, _ in pickletools.genops(opcodes_of(data)))
        compare(data, f"pickle {i}, protocol {protocol}")
    if step == 1:
        print(" ".join(sorted(seen)))


# ---- hostile pickles ----

P, STOP = b"\x80\x04", b"."


def text(s):
    s = s.encode()
    return b"\x8c" + bytes([len(s)]) + s


def name(module, what):
    return text(module) + text(what) + b"\x93"


def frame(data, n=None):
    return b"\x95" + struct.pack("<Q", len(data) if n is None else n) + data


def band(code, *buffers, n=None):
    code = b"\x80\x05" + code
    return struct.pack("<q", len(code) if n is None else n) + code + b"".join(buffers)


def buffer(data, n=None):
    return struct.pack("<q", len(data) if n is None else n) + data


S = name("builtins", "slice")
OBJ = S + b"N\x85R"


def hostile():
    yield "empty", b"", "empty"
    yield "html", b"<!DOCTYPE html><html>", "begins with 0x3c"
    yield "pointer", b"version https://git-lfs.github.com/spec/v1\n", "begins with 0x76"
    yield "no-proto", text("a") + b"." + b" " * 9, "begins with 0x8c"
    for v in range(4):
        yield f"protocol-{v}", pickle.dumps(["a long enough text"], v), \
            "begins with 0x" if v < 2 else f"pickle protocol {v}, wanted 4 or 5"
    yield "protocol-6", b"\x80\x06N." + b"." * 8, "pickle protocol 6, wanted 4 or 5"
    yield "second-proto", P + b"N\x80\x04\x85." + b"N" * 9, "a second PROTO"
    yield "proto-in-frame", P + frame(b"\x80\x05N."), "a second PROTO"

    for op, word in (("i", "INST"), ("o", "OBJ"), ("\x92", "NEWOBJ_EX")):
        yield word, P + b"(" + S + op.encode("latin-1") + b"os\nsystem\n.", f"opcode {word} could run code"
    yield "GLOBAL", P + b"cos\nsystem\n.", "opcode GLOBAL is of an older protocol"
    yield "GLOBAL-dots", P + b"ctinygrad.helpers\nos.getcwd\n.", "opcode GLOBAL is of an older protocol"
    for op, word in ((0x82, "EXT1"), (0x83, "EXT2"), (0x84, "EXT4")):
        yield word, P + bytes([op]) + b"\1\0\0\0.....", f"opcode {word} imports by a number"
    yield "PERSID", P + b"Psecret\n.....", "opcode PERSID asks the loader"
    yield "BINPERSID", P + text("secret") + b"Q.", "opcode BINPERSID asks the loader"
    for op, word in ((b"p0\n", "PUT"), (b"q\0", "BINPUT"), (b"r\0\0\0\0", "LONG_BINPUT")):
        yield word, P + text("os") + op + text("posix") + op + b"00.", f"opcode {word} chooses its memo slot"
    for op, word in ((b"0", "POP"), (b"1", "POP_MARK"), (b"2", "DUP"), (b"g0\n", "GET"), (b"I1\n", "INT"),
                     (b"F1\n", "FLOAT"), (b"L1L\n", "LONG"), (b"S'a'\n", "STRING"), (b"U\1a", "SHORT_BINSTRING"),
                     (b"Va\n", "UNICODE"), (b"(l", "LIST"), (b"(d", "DICT"), (b"\x8f", "EMPTY_SET"),
                     (b"(\x91", "FROZENSET"), (b"\x8b\1\0\0\0\1", "LONG4"), (b"\x98", "READONLY_BUFFER"),
                     (b"\x8d\1\0\0\0\0\0\0\0a", "BINUNICODE8")):
        yield word, P + text("a" * 9) + op + b"\x86.", f"opcode {word} occurs in no artifact"
    for op in (0x00, 0x7f, 0xff):
        yield f"no-opcode-{op}", P + bytes([op]) + b"." * 9, f"0x{op:02x} is no opcode"

    for what, operand in (("int", b"K\1"), ("bytes", b"C\2os"), ("global", S), ("object", OBJ), ("list", b"]"),
                          ("tuple", b")"), ("dict", b"}"), ("next", b"N"), ("empty", text("")), ("blank", text("a b")),
                          ("newline", text("os\n")), ("nul", text("os\0")), ("umlaut", text("systém")),
                          ("long", b"X" + struct.pack("<I", 300) + b"a" * 300)):
        yield f"operand-{what}", P + text("os") + operand + b"\x93.", "STACK_GLOBAL takes a string and a"
        yield f"module-{what}", P + operand + text("system") + b"\x93.", "STACK_GLOBAL takes a.* and a string, wanted"
    yield "dots", P + name("tinygrad.helpers", "os.getcwd") + b").", "tinygrad.helpers os.getcwd: a dot in a name"
    for word in (".os", "os.", "os..path", "9os", "."):
        yield f"module{word}", P + name(word, "system") + b".", f'"{word}" is not the name of a module'
    yield "name-digit", P + name("os", "9system") + b".", '"9system" of os is not a name'
    for word in ("getattr", "eval", "exec", "__import__", "open", "compile", "globals", "map"):
        yield f"builtins-{word}", P + name("builtins", word) + text("os") + b"\x85R.", \
            f"builtins {word} could run code: no list"
    yield "getattr-by-memo", P + text("builtins") + b"\x94" + text("getattr") + b"\x94]\x94h\0h\1\x93.", \
        "builtins getattr could run code"

    for what, value in (("string", text("os")), ("int", b"K\1"), ("object", OBJ), ("tuple", b")"), ("list", b"]"),
                        ("dict", b"}"), ("bytes", b"C\1a")):
        yield f"reduce-{what}", P + value + b")R." + b"N" * 8, "REDUCE calls a.*, wanted a global"
        yield f"newobj-{what}", P + value + b")\x81." + b"N" * 8, "NEWOBJ calls a.*, wanted a global"
    for what, value in (("list", b"]"), ("none", b"N"), ("object", OBJ)):
        yield f"arguments-{what}", P + S + value + b"R.", "REDUCE gives it a.*, wanted a tuple"
    for what, value in (("global", S), ("dict", b"}"), ("list", b"]"), ("string", text("a"))):
        yield f"build-{what}", P + value + b"}b." + b"N" * 8, "BUILD changes a.*, wanted an object"
    yield "append-tuple", P + b")Na." + b"N" * 8, "APPEND finds a tuple, wanted a list"
    yield "appends-global", P + S + b"(NNe.", "APPENDS finds a global, wanted a list"
    yield "setitem-global", P + S + text("a") + b"Ns.", "SETITEM finds a global, wanted a dict"
    yield "setitems-list", P + b"](NNu." + b"N" * 8, "SETITEMS finds a list, wanted a dict"
    yield "setitems-odd", P + b"}(NNNu." + b"N" * 8, "SETITEMS finds a key without a value"

    yield "get-unknown", P + b"Nh\0\x86." + b"N" * 8, "memo slot 0 was never written"
    yield "get-later", P + b"N\x94h\1\x86." + b"N" * 8, "memo slot 1 was never written"
    yield "get-large", P + b"Nj\xff\xff\xff\xff.N", "memo slot 4294967295 was never written"
    yield "memoize-nothing", P + b"\x94N." + b"N" * 8, "MEMOIZE finds 0 values"
    for op, word in ((b"R", "REDUCE"), (b"\x81", "NEWOBJ"), (b"b", "BUILD"), (b"\x93", "STACK_GLOBAL"), (b"a", "APPEND"),
                     (b"s", "SETITEM"), (b"\x86", "TUPLE")):
        yield f"underflow-{word}", P + b"N" + op + b"." + b"N" * 8, f"{word} finds 1 values"
        yield f"below-mark-{word}", P + b"NNN(N" + op + b"." + b"N" * 8, f"{word} finds 1 values"
    for op, word in ((b"t", "TUPLE"), (b"e", "APPENDS"), (b"u", "SETITEMS")):
        yield f"no-mark-{word}", P + b"]N" + op + b"." + b"N" * 8, f"{word} finds no mark"
    yield "appends-to-nothing", P + b"(Ne." + b"N" * 8, "APPENDS finds 1 values"
    yield "stop-empty", P + b"." + b"N" * 8, "STOP finds 0 values"
    yield "stop-two", P + b"NN." + b"N" * 8, "STOP finds 2 values"
    yield "stop-mark", P + b"(N." + b"N" * 8, "STOP finds 1 values and 1 marks"

    yield "no-stop", P + b"N\x85\x85\x85\x85\x85\x85\x85\x85", "truncated: no STOP"
    yield "after-stop", P + b"N\x85\x85\x85\x85\x85.\0\0\0", "3 bytes follow STOP"
    yield "second-pickle", P + b"N." + P + name("os", "system") + b".", "[0-9]+ bytes follow STOP"
    yield "after-stop-in-frame", P + frame(b"N.NN"), "2 bytes of the frame follow STOP"
    yield "frame-in-frame", P + frame(b"N\x85" + frame(b"\x85.")), "a frame begins inside another"
    yield "frames-overlap", P + frame(b"N" + frame(b"\x85."), 10), "a frame begins inside another"
    yield "frame-too-long", P + frame(b"N.", 1000), "truncated: a frame needs 1000 bytes, 2 are left"
    yield "frame-huge", P + frame(b"N.", 2**64 - 1), "truncated: a frame needs 18446744073709551615"
    yield "frame-cuts-opcode", P + frame(text("tinygrad"), 5) + b".", "reads across the end of its frame"
    yield "frame-cuts-argument", P + frame(b"J\0\0", 3) + b"\0\0.", "reads across the end of its frame"
    yield "frame-cuts-bytes", P + frame(b"B\5\0\0\0abcde.", 7), "reads across the end of its frame"
    yield "bytes-too-long", P + b"B\0\0\0\1abcde.", "truncated: 16777221 bytes needed"
    yield "bytes-too-many", P + b"\x8e" + struct.pack("<Q", 2**63) + b".", "BINBYTES8 of 9223372036854775808 bytes"
    yield "bytearray-too-many", P + b"\x96" + b"\xff" * 8 + b".", "BYTEARRAY8 of 18446744073709551615 bytes"
    yield "bytearray-long", P + b"\x96" + struct.pack("<Q", 2**63 - 1) + b".", "truncated: [0-9]+ bytes needed"
    yield "text-too-long", P + b"\x8c\xffabcdefgh.", "truncated: 257 bytes needed"

    yield "next-in-band", P + b"\x97\x85\x85." + b"N" * 6, "NEXT_BUFFER, but no buffers follow"
    yield "opcodes-too-long", band(b"N.", n=2000), "truncated: opcodes need 2000 bytes"
    yield "opcodes-too-short", band(b"N\x85.", n=4), "truncated: no STOP"
    yield "opcodes-after-stop", band(b"N." + b"NN"), "2 bytes follow STOP"
    yield "opcodes-negative", band(b"N.", n=-1), "begins with 0xff"
    yield "buffer-missing", band(b"\x97."), "truncated: .* 1 buffers are missing"
    yield "buffer-second-missing", band(b"\x97\x97\x86.", buffer(b"ab")), "1 buffers are missing"
    yield "buffer-too-many", band(b"\x97.", buffer(b"ab"), buffer(b"c")), "bytes follow the last buffer"
    yield "buffer-none-wanted", band(b"N.", buffer(b"ab")), "bytes follow the last buffer"
    yield "buffer-negative", band(b"\x97.", buffer(b"ab", -2)), "a buffer of -2 bytes"
    yield "buffer-too-long", band(b"\x97.", buffer(b"ab", 3)), "a buffer needs 3 bytes, 2 are left"
    yield "buffer-huge", band(b"\x97.", buffer(b"ab", 2**63 - 1)), "a buffer needs 9223372036854775807 bytes"
    yield "buffer-tail", band(b"\x97.", buffer(b"ab"), b"\0\0\0"), "bytes follow the last buffer"
    yield "buffer-cut-length", band(b"\x97\x97\x86.", buffer(b"ab"), b"\0\0\0"), "truncated: "

    yield "depth", P + b"N" * (2**20 + 1) + b".", "more than 1048576 values on the stack"
    yield "marks", P + b"(" * (2**14 + 1) + b".", "more than 16384 marks"
    yield "memo", P + b"N" + b"\x94" * (2**22 + 1) + b".", "more than 4194304 memo slots"
    yield "opcodes", P + b"]" + b"Na" * 2**23 + b".", "more than 16777216 opcodes"
    yield "names", P + b"]" + b"".join(text(f"n{i}") + b"a" for i in range(2**18 + 1)) + b".", \
        "more than 262144 different names"
    yield "imports", P + b"]" + b"".join(name("os", f"n{i}") + b"a" for i in range(1025)) + b".", \
        "more than 1024 different imports"


def honest():
    yield "nested", P + b"C\x20" + (P + name("os", "system") + b"." + b" " * 32)[:32] + b"."
    yield "nested-text", P + b"X" + struct.pack("<I", 400) + b"cos\nsystem\n." * 33 + b"aaaa" + b"."
    yield "bytes8", P + b"\x8e" + struct.pack("<Q", 3) + b"abc."
    yield "frames", P + frame(b"](N") + b"B\x0b\0\0\0opcodes...." + frame(b"e.")
    yield "frame-empty", P + frame(b"") + frame(b"N.")
    yield "object", P + OBJ + b"}" + text("a") + b"Nsb" + b"."
    yield "on-object", P + OBJ + b"(NNe(NNuNaNNs."
    yield "buffers", band(b"\x97\x97\x86.", buffer(b""), buffer(b"ab"))
    yield "looks-framed", b"\x80\x04B" + struct.pack("<I", 8) + b"a\x80\x05bcdef."
    yield "deep", P + b"(" * 16384 + b"t" * 16384 + b"."


def write(cases, folder):
    for case in cases:
        with open(os.path.join(folder, f"{case[0]}.pkl"), "wb") as f:
            f.write(case[1])
        print("\t".join((case[0], *case[2:])))


def prefixes(path):
    with open(path, "rb") as f:
        data = f.read()
    for n in range(len(data)):
        with open("prefix", "wb") as f:
            f.write(data[:n])
        for how in {"data": data[:n]}, {"path": "prefix"}:
            status, got, said = pkl_scan(**how)
            if status != 1 or got or said.count("\n") != 1:
                sys.exit(f"{n} bytes of {path}: status {status}, {got}, {said}")


def main(what, *args):
    if what == "hostile":
        write(hostile(), args[0])
    elif what == "honest":
        write(honest(), args[0])
    elif what == "compare":
        for path in args:
            with open(path, "rb") as f:
                compare(f.read(), path)
    elif what == "generate":
        generate(int(args[0]), int(args[1]))
    elif what == "prefixes":
        prefixes(args[0])
    elif what == "wrap":
        with open(args[1], "wb") as f:
            f.write(P + b"\x8e" + struct.pack("<Q", int(args[0])))
            f.seek(int(args[0]), 1)
            f.write(b".")
    elif what == "peak":
        subprocess.run(args, check=True, stdout=subprocess.DEVNULL)
        print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)


main(*sys.argv[1:])
