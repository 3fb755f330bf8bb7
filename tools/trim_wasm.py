"""Takes the custom sections out of a WebAssembly module: names and notes for tools, which nobody needs to download."""

import sys


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


def main(source: str, target: str) -> None:
    with open(source, "rb") as file:
        data = file.read()
    kept, at = [data[:8]], 8
    while at < len(data):
        length, start = number(data, at + 1)
        if data[at] != 0:
            kept.append(data[at : start + length])
        at = start + length
    with open(target, "wb") as file:
        file.write(b"".join(kept))


main(*sys.argv[1:])
