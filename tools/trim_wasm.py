"""Takes out of a WebAssembly module what nobody needs to download: `trim_wasm.py IN OUT [--without PATTERN]`.

Custom sections, which are names and notes for tools. With a pattern also the bodies of functions whose names it matches: whoever
called one would be stopped, so that this is for functions that cannot be called. What only they called is left to `wasm-opt`.
"""

import argparse
import re
from collections.abc import Iterator

CUSTOM, IMPORT, CODE = 0, 2, 10
# No locals, `unreachable`, end.
STOP = bytes([3, 0, 0x00, 0x0B])


def number(data: bytes, at: int) -> tuple[int, int]:
    """A LEB128 number, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def leb(value: int) -> bytes:
    """The bytes of a number."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def text(data: bytes, at: int) -> tuple[str, int]:
    length, at = number(data, at)
    return data[at : at + length].decode(), at + length


def sections(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 8
    while at < len(data):
        kind = data[at]
        length, start = number(data, at + 1)
        yield kind, data[start : start + length]
        at = start + length


def imported(section: bytes) -> int:
    """Functions that come from outside, which are counted first; this module has no other imports."""
    count, at = number(section, 0)
    for _ in range(count):
        _, at = text(section, at)
        _, at = text(section, at)
        if section[at] != 0:
            raise SystemExit("the module imports something else than functions")
        _, at = number(section, at + 1)
    return count


def names(section: bytes) -> dict[int, str]:
    """Names of functions, of the custom section of names."""
    title, at = text(section, 0)
    found = {}
    while title == "name" and at < len(section):
        kind = section[at]
        length, at = number(section, at + 1)
        end = at + length
        if kind == 1:
            count, at = number(section, at)
            for _ in range(count):
                index, at = number(section, at)
                found[index], at = text(section, at)
        at = end
    return found


def without(code: bytes, first: int, known: dict[int, str], pattern: str) -> bytes:
    """The section of functions, some of them without their bodies."""
    count, at = number(code, 0)
    kept, emptied = [leb(count)], 0
    for index in range(first, first + count):
        start = at
        length, at = number(code, at)
        at += length
        if re.search(pattern, known.get(index, "")):
            emptied += length
            kept.append(STOP)
        else:
            kept.append(code[start:at])
    if not emptied:
        raise SystemExit(f"no function is called {pattern}")
    return b"".join(kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--without")
    arguments = parser.parse_args()
    with open(arguments.source, "rb") as file:
        data = file.read()
    first, known = 0, {}
    for kind, section in sections(data):
        if kind == IMPORT:
            first = imported(section)
        elif kind == CUSTOM:
            known |= names(section)
    kept = [data[:8]]
    for kind, section in sections(data):
        if kind == CUSTOM:
            continue
        if kind == CODE and arguments.without:
            section = without(section, first, known, arguments.without)
        kept.append(bytes([kind]) + leb(len(section)) + section)
    with open(arguments.target, "wb") as file:
        file.write(b"".join(kept))


main()
