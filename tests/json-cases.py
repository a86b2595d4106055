"""Writes good/NAME.json with the text that Python makes of it beside it, and
bad/NAME.json: what a strict reader must refuse. usage: json-cases.py DIR"""
import json
import os
import sys

GOOD = {
    "empty-object": "{}", "empty-array": "[]", "true": "true",
    "false": "false", "null": "null", "zero": "0", "minus-zero-int": "-1",
    "string": '"a"', "empty-string": '""', "space": ' \t\r\n[ 1 , 2 ] \n',
    "numbers": "[0, 1, -1, 10, 1e3, 1E+2, 25e-1, 0.5, 9007199254740992]",
    "sizes": '{"size": 104857600, "big": 2147483648, "max": 1099511627776}',
    "order": '{"z": 1, "a": 2, "m": {"y": 3, "b": 4}, "0": 5}',
    "utf8": '{"name": "Deep RL 3 V2 \U0001f440\U0001f4e1", "\u00e9": "\u20ac"}',
    "escapes": r'"\" \\ \/ \b \f \n \r \t \u00e9 \u20AC \ud83d\udc40"',
    "escaped-key": r'{"\u0061": 1, "b": 2}',
    "quote-key": r'{"a\"": 1, "a": 2, "a\\": 3}',
    "same-key-elsewhere": '[{"a": 1}, {"a": 2}, {"b": {"a": 3}, "a": 4}]',
    "value-like-key": '{"a": "b", "b": "a", "c": ["a", "a", "b"]}',
    "colon-in-string": '["a", ":", "a", "x:", {"k": ":"}]',
    "deep": "[" * 128 + "]" * 128,
    "deep-objects": '{"a":' * 128 + "1" + "}" * 128,
    "long-string": '"' + "x" * 100000 + '"',
    "many-keys": json.dumps({f"k{i}": i for i in range(3000)}),
}
BAD = {
    "nothing": "", "blank": " \n", "comma": "[1,]", "comma-object": '{"a":1,}',
    "no-comma": "[1 2]", "no-colon": '{"a" 1}', "no-value": '{"a":}',
    "number-key": "{1: 2}", "single-quotes": "['a']", "two": "1 2",
    "two-objects": "{} {}", "rest": '{"a": 1} x', "open-array": "[1",
    "open-object": '{"a": 1', "open-string": '"a', "wrong-close": "[1}",
    "close": "]", "nan": "NaN", "nan-lower": "[nan]", "infinity": "Infinity",
    "minus-infinity": "-Infinity", "nul-word": "nul", "nulll": "nulll",
    "upper": "True", "plus": "+1", "leading-zero": "01", "dot": ".5",
    "dot-end": "1.", "exp": "1e", "exp-sign": "1e+", "minus": "-",
    "hex": "0x10", "word": "abc", "comment": "/* a */ 1",
    "hash-comment": "# a\n1", "escape": r'"\x"', "escape-end": '"a\\',
    "escape-u": r'"\u12"',
    "escape-u-g": r'"\u00g0"', "control": '"a\nb"', "tab": '"a\tb"',
    "lone-high": r'"\ud83d"', "lone-high-x": r'"\ud83dx"',
    "lone-low": r'"\udc40"', "reversed": r'"\udc40\ud83d"',
    "high-high": r'"\ud83d\ud83d"', "nul-escape": r'"a\u0000b"',
    "duplicate": '{"a": 1,\n "b": 2,\n "a": 3}',
    "duplicate-escaped": '{"a": 1, "\\u0061": 2}',
    "duplicate-pair": '{"\U0001f440": 1, "\\ud83d\\udc40": 2}',
    "duplicate-deep": '[{"x": {"k": 1, "l": [{"k": 2}], "k": 3}}]',
    "too-deep": "[" * 129 + "]" * 129,
    "too-deep-objects": '{"a":' * 129 + "1" + "}" * 129,
    "long-number": "1" * 400, "endless-number": "-1e999",
}
BYTES = {
    "nul": b'{"a": \x00}', "nul-end": b"{}\x00", "nul-string": b'"a\x00b"',
    "bom": b"\xef\xbb\xbf{}", "latin1": b'"\xe9"', "cut": b'"\xe2\x82"',
    "overlong": b'"\xc0\xaf"', "overlong3": b'"\xe0\x80\xaf"',
    "surrogate": b'"\xed\xa0\x80"', "too-high": b'"\xf4\x90\x80\x80"',
    "continuation": b'"\x80"', "fe": b'"\xfe"', "key": b'{"\xff": 1}',
    "outside": b'[1, \xc3\xa9]', "utf16": "{}".encode("utf-16"),
}


def pairs(items):
    keys = [k for k, _ in items]
    if len(keys) != len(set(keys)):
        raise ValueError("duplicate key")
    return dict(items)


def no(word):
    raise ValueError(word)


def strict(data):
    """What Python says, where it is as strict as we are."""
    value = json.loads(data.decode("utf-8"), object_pairs_hook=pairs,
                       parse_constant=no)
    text = json.dumps(value, indent=2, ensure_ascii=False)
    text.encode("utf-8")    # fails for a lone surrogate
    return text


def tidy(text):
    # jq writes 1000 for 1e3 and 2.5 for 25e-1, as Python does but for floats
    # that are whole
    return text.replace("1000.0", "1000").replace("100.0", "100")


def main(where):
    for kind in "good", "bad":
        os.makedirs(f"{where}/{kind}")
    for name, text in GOOD.items():
        with open(f"{where}/good/{name}.json", "wb") as f:
            f.write(text.encode())
        with open(f"{where}/good/{name}.out", "w", encoding="utf-8") as f:
            f.write(tidy(strict(text.encode())) + "\n")
    ours_alone = {"nul-escape", "too-deep", "too-deep-objects", "long-number",
                  "endless-number"}
    for name, data in ({n: t.encode() for n, t in BAD.items()} | BYTES).items():
        with open(f"{where}/bad/{name}.json", "wb") as f:
            f.write(data)
        try:
            strict(data)
        except (ValueError, RecursionError):
            continue
        if name not in ours_alone:
            sys.exit(f"{name}: Python takes it")


if __name__ == "__main__":
    main(sys.argv[1])
