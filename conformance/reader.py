"""A reader of terrane files, version 1, written from spec/terrane-1.md alone. Needs NumPy."""

import hashlib
import json
import math
import struct
import tomllib
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np


class Fault(Exception):
    """The file cannot be read."""


class Malformed(Fault):
    """The bytes are not what the specification says."""


class Unsupported(Fault):
    """The file needs something that this reader does not know."""


class LimitExceeded(Fault):
    """The file states more than the specification allows."""


class NoModel(Exception):
    """A tile needs a model that is neither embedded nor given; this is no fault of the file."""


def require(condition, text, kind=Malformed):
    """Raises the fault unless the condition holds."""
    if not condition:
        raise kind(text)


# Section 4: limits

HEAD = 16384
MAX_RASTER_SIDE = 2**30
MIN_SIDE, MAX_SIDE = 16, 4096
MAX_LEVELS = 24
MAX_TILES = 2**30
MAX_PAGES = 512
MAX_RECORD = 2**30
MAX_PAGE = 2**24
MAX_MODEL = 2**34
MAX_MODEL_SIZE = 16384  # section 16: beyond reason
MAX_CONTEXT_SIZE = 512  # appendix F.7
MAX_SYMBOL = 2**40  # appendix F.2


# Section 5: basic structures


def crc_table():
    """The CRC-32C of each single byte."""
    table = list(range(256))
    for _ in range(8):
        table = [(crc >> 1) ^ (0x82F63B78 if crc & 1 else 0) for crc in table]
    return table


CRC_TABLE = crc_table()


def crc32c(data):
    """The CRC-32C of bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def signed(value):
    """The signed number with the same lowest 64 bits."""
    return ((value + 2**63) & (2**64 - 1)) - 2**63


def utf8(data):
    """A text from its bytes."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise Malformed("a text that is not UTF-8") from error


class Cursor:
    """Reads structures one after the other, never beyond the end."""

    def __init__(self, data):
        self.data, self.offset = data, 0

    def left(self):
        """How many bytes are left."""
        return len(self.data) - self.offset

    def take(self, count):
        """The next bytes."""
        require(count <= self.left(), "ends too early")
        self.offset += count
        return self.data[self.offset - count : self.offset]

    def rest(self):
        """All bytes that are left."""
        return self.take(self.left())

    def end(self):
        """Requires that nothing is left."""
        require(not self.left(), "bytes left over")

    def numbers(self, layout):
        """Little-endian numbers, by the letters of `struct`."""
        layout = "<" + layout
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def number(self, letter):
        """One little-endian number."""
        return self.numbers(letter)[0]

    def varint(self):
        """An unsigned number of 64 bits in its shortest form."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self.number("B")
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                require(byte or not shift, "a varint with a needless byte")
                require(value < 2**64, "a varint of 2^64 or more")
                return value
        raise Malformed("a varint of more than ten bytes")

    def zigzag(self):
        """A signed number of 64 bits."""
        code = self.varint()
        return (code >> 1) ^ -(code & 1)

    def block(self):
        """Bytes after their number."""
        return self.take(self.varint())

    def text(self):
        """A block of UTF-8."""
        return utf8(self.block())

    def flag(self):
        """A byte that is 0 or 1."""
        value = self.number("B")
        require(value <= 1, "a flag other than 0 or 1")
        return bool(value)


# Sections 6 and 7: the head


@dataclass
class Page:
    """An entry of the root."""

    offset: int
    length: int
    checksum: int


@dataclass
class ModelEntry:
    """The chunk MODL."""

    sha256: bytes
    offset: int
    length: int
    checksum: int
    name: str
    address: str


@dataclass
class Level:
    """The size of a level, its grid of tiles and the number of its first tile."""

    width: int
    height: int
    columns: int
    rows: int
    first: int


class Head:
    """The first 16384 bytes of a file."""

    def __init__(self, data, file_length):
        require(data[:8] == b"\x89TRN\r\n\x1a\n", "other magic")
        require(len(data) == HEAD, "fewer than 16384 bytes")
        version = int.from_bytes(data[8:10], "little")
        require(version == 1, f"version {version}", Unsupported)
        require(crc32c(data[:-4]) == int.from_bytes(data[-4:], "little"), "wrong checksum of the head")
        cursor = Cursor(data[:-4])
        _, _, reserved, pages, self.length = cursor.numbers("8sHHIQ")
        self.columns, self.rows, self.side, levels, self.method = cursor.numbers("IIHBB")
        self.tiles_per_page, self.bound = cursor.numbers("IB")
        self.georeferenced, self.points = cursor.flag(), cursor.flag()
        reserved_too = cursor.take(5)
        self.transform = cursor.numbers("6d")
        self.max_error, self.rms_error, self.largest_error, self.lowest, self.highest = cursor.numbers("5d")
        self.valid_pixels, self.tiles_with_data = cursor.numbers("QQ")
        self.horizontal, self.vertical = cursor.numbers("II")

        require(not reserved and not any(reserved_too), "reserved field not 0")
        require(self.method <= 5, f"method {self.method}", Unsupported)
        require(self.bound <= 3, f"error bound {self.bound}", Unsupported)
        require(self.columns and self.rows, "a raster without pixels")
        require(max(self.columns, self.rows) <= MAX_RASTER_SIDE, "columns or rows", LimitExceeded)
        require(MIN_SIDE <= self.side <= MAX_SIDE, "side", LimitExceeded)
        require(self.side % 2 == 0, "an odd side")
        require(1 <= levels <= MAX_LEVELS, "levels", LimitExceeded)
        self.levels, self.tiles = self.grids(levels)
        require(self.tiles <= MAX_TILES, "tiles", LimitExceeded)
        require(pages <= MAX_PAGES, "pages", LimitExceeded)
        require(self.tiles_per_page and pages == -(-self.tiles // self.tiles_per_page), "pages do not cover the tiles")

        self.geo_keys, self.samples, self.wkt = ((), (), ""), (None, 1.0, 0.0, "float32", "", ""), ""
        self.model = None
        self.root = None
        self.chunks(cursor)
        require(self.root is not None, "no ROOT")
        require(len(self.root) == pages, "ROOT of another size")
        require(self.model or not self.method, "no MODL")
        require(self.length == file_length, "another length of the file")

    def grids(self, levels):
        """All levels, and the number of all tiles (section 8)."""
        found, first = [], 0
        for k in range(levels):
            width, height = -(-self.columns // 2**k), -(-self.rows // 2**k)
            columns, rows = -(-width // self.side), -(-height // self.side)
            found.append(Level(width, height, columns, rows, first))
            first += columns * rows
        return found, first

    def chunks(self, cursor):
        """Reads all chunks up to TEND and the zeros after it."""
        known = {b"GEOK": self.read_geok, b"SAMP": self.read_samp, b"wkt2": self.read_wkt2}
        known |= {b"MODL": self.read_modl, b"ROOT": self.read_root, b"TEND": lambda content: None}
        seen, tag = set(), None
        while tag != b"TEND":
            tag, length = cursor.numbers("4sI")
            require(tag not in seen, f"{tag} comes twice")
            seen.add(tag)
            content = Cursor(cursor.take(length))
            if tag in known:
                known[tag](content)
                content.end()
            else:
                require(tag[:1].islower(), f"unknown chunk {tag}", Unsupported)
        require(not any(cursor.rest()), "bytes after TEND")

    def read_geok(self, content):
        """The keys of a GeoTIFF."""
        directory = np.frombuffer(content.take(2 * content.varint()), "<u2")
        doubles = np.frombuffer(content.take(8 * content.varint()), "<f8")
        self.geo_keys = directory, doubles, content.text()

    def read_samp(self, content):
        """The samples of the source: no data, scale, offset, type, unit, description."""
        has_no_data = content.flag()
        no_data, scale, offset = content.numbers("3d")
        kind, unit, description = content.text(), content.text(), content.text()
        self.samples = no_data if has_no_data else None, scale, offset, kind, unit, description

    def read_wkt2(self, content):
        """The coordinate system."""
        self.wkt = utf8(content.rest())

    def read_modl(self, content):
        """Where the model is."""
        self.model = ModelEntry(*content.numbers("32sQQI"), content.text(), content.text())
        require(self.model.length <= MAX_MODEL, "bytes of the model", LimitExceeded)

    def read_root(self, content):
        """Where the pages of the index are."""
        require(content.left() % 16 == 0, "ROOT of another size")
        self.root = [Page(*content.numbers("QII")) for _ in range(content.left() // 16)]
        require(all(page.length <= MAX_PAGE for page in self.root), "bytes of a page", LimitExceeded)


# Section 11: the range coder


class RangeDecoder:
    """Decodes one coded stream."""

    def __init__(self, data):
        self.data, self.offset, self.range, self.code = data, 0, 0xFFFFFFFF, 0
        for _ in range(4):
            self.code = self.code << 8 | self.next()

    def next(self):
        """The next byte; 0 after the end."""
        self.offset += 1
        return self.data[self.offset - 1] if self.offset <= len(self.data) else 0

    def decode_target(self):
        """The cumulative frequency that the next symbol covers."""
        return min(self.code // (self.range >> 16), 65535)

    def consume(self, cumulative, frequency):
        """Consumes the symbol with this cumulative frequency and frequency."""
        scale = self.range >> 16
        self.code = (self.code - scale * cumulative) & 0xFFFFFFFF
        self.range = scale * frequency
        while self.range < 2**24:
            self.range <<= 8
            self.code = (self.code << 8 | self.next()) & 0xFFFFFFFF

    def bit(self, context):
        """An adaptive bit."""
        fast, slow, seen = context
        p_one = min(max((fast + slow) // 2, 32), 65504)
        value = self.decode_target() < p_one
        f, s = min(seen, 40) + 2, min(seen, 250) + 2
        if value:
            self.consume(0, p_one)
            context[:] = fast + (65535 - fast) // f, slow + (65535 - slow) // s, min(seen + 1, 250)
        else:
            self.consume(p_one, 65536 - p_one)
            context[:] = fast - fast // f, slow - slow // s, min(seen + 1, 250)
        return value

    def raw(self, count):
        """So many equally likely bits."""
        value = 0
        while count > 0:
            k = min(count, 16)
            count -= k
            bits = self.decode_target() >> (16 - k)
            self.consume(bits << (16 - k), 1 << (16 - k))
            value = value << k | bits
        return value

    def symbol(self, cumulative):
        """A symbol of a table, given the cumulative frequencies of its symbols and 65536."""
        k = bisect_right(cumulative, self.decode_target()) - 1
        self.consume(cumulative[k], cumulative[k + 1] - cumulative[k])
        return k

    def end(self):
        """Requires that the stream ends here."""
        require(self.offset >= len(self.data), "a coded stream with bytes left over")
        require(not self.data or self.data[-1], "a coded stream with a last byte of 0")


def contexts(count):
    """New contexts of adaptive bits."""
    return [[32768, 32768, 0] for _ in range(count)]


# Section 12: masks, integers and symbols


def decode_mask(data, width, height):
    """Which pixels of a window are missing."""
    coder, models = RangeDecoder(data), contexts(1024)
    mask = np.zeros((height + 2, width + 5), bool).tolist()  # 2 rows above, 3 columns left, 2 right
    for y in range(2, height + 2):
        row, above, above2 = mask[y], mask[y - 1], mask[y - 2]
        for x in range(3, width + 3):
            near = row[x - 1], row[x - 2], row[x - 3]
            near += above[x + 2], above[x + 1], above[x], above[x - 1], above[x - 2]
            near += above2[x + 1], above2[x]
            context = 0
            for bit in near:
                context = context << 1 | bit
            row[x] = coder.bit(models[context])
    coder.end()
    return np.array(mask)[2:, 3:-2]


def activity_of(total):
    """The class of a sum of residuals."""
    if total < 8:
        return total
    top = total.bit_length() - 1
    return min(2 + 2 * top + (total >> (top - 1) & 1), 19)


def sign_of(residual):
    """0 below zero, 1 at zero, 2 above."""
    return (residual > 0) - (residual < 0) + 1


def read_integers(coder, width, height, median, missing=None):
    """Rows of signed 64-bit integers out of a stream, with prediction *median* or *zero*."""
    zero, sign = contexts(20), contexts(9)
    size, second = [contexts(63) for _ in range(20)], [contexts(64) for _ in range(2)]

    def residual(activity, signs):
        """A coded residual."""
        if coder.bit(zero[activity]):
            return 0
        negative = coder.bit(sign[signs])
        top = 0
        while top < 63 and coder.bit(size[activity][top]):
            top += 1
        m = 1
        if top > 0:
            m = m << 1 | coder.bit(second[activity > 10][top])
            m = m << (top - 1) | coder.raw(top - 1)
        return signed(-m if negative else m)

    def predict(x, above, row):
        """The median of the neighbours, or what there is of them."""
        if not row:
            return above[x] if above else 0
        if not above:
            return row[x - 1]
        a, b = row[x - 1], above[x]
        return min(max(a, b), max(min(a, b), signed(a + b - above[x - 1])))

    rows, above, above_r = [], [], [0] * (width + 2)  # residuals have a column of 0 on either side
    for y in range(height):
        row, row_r = [], [0]
        for x in range(width):
            w, n, nw, ne = row_r[x], above_r[x + 1], above_r[x], above_r[x + 2]
            r = 0
            if missing is None or not missing[y, x]:
                activity = activity_of(2 * abs(w) + 2 * abs(n) + abs(nw) + abs(ne))
                r = residual(activity, 3 * sign_of(w) + sign_of(n))
            row.append(signed(predict(x, above, row) + r) if median else r)
            row_r.append(r)
        rows.append(row)
        above, above_r = row, row_r + [0]
    return np.array(rows, np.int64)


def decode_integers(data, width, height, median, missing=None):
    """Integers with a stream of their own."""
    coder = RangeDecoder(data)
    integers = read_integers(coder, width, height, median, missing)
    coder.end()
    return integers


def decode_symbols(data, coding, bits, model):
    """Symbols of the tokens of a tile, [count, channels]."""
    count, channels = model.count, model.channels
    if coding == 0:
        coder, tables, symbols = RangeDecoder(data), model.tables[bits], []
        for i in range(count * channels):
            k = coder.symbol(tables[i % channels])
            symbols.append(256 * k + coder.raw(8) - 32768 if bits == 16 else k - (2 ** (bits - 1) - 1))
        coder.end()
        symbols = np.array(symbols).reshape(count, channels)
    elif coding == 1:
        symbols = decode_integers(data, count, channels, median=False).T
    elif coding == 2:
        require(len(data) == -(-count * channels * bits // 8), "wrong length of fixed width")
        ones = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[: count * channels * bits]
        symbols = ones.reshape(count, channels, bits) @ (1 << np.arange(bits))
        symbols -= (symbols >> (bits - 1)) << bits
    else:
        raise Unsupported(f"coding {coding}")
    limit = 2 ** (bits - 1) - 1
    require(symbols.min() >= -limit and symbols.max() <= limit, "a symbol too large")
    return symbols


# Section 13 and appendix C: the model and its heights


FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
INTEGERS = {"I8": "|i1", "U8": "|u1", "U16": "<u2", "I32": "<i4"}


def read_safetensors(data, key, parse, kinds):
    """The configuration of a model, parsed from its metadata, and all arrays; floats as `f32`."""
    arrays = {}
    try:
        start = 8 + int.from_bytes(data[:8], "little")
        entries = json.loads(data[8:start])
        config = parse(entries.pop("__metadata__")[key])
        for name, entry in entries.items():
            first, last = entry["data_offsets"]
            array = np.frombuffer(data[start + first : start + last], kinds[entry["dtype"]])
            if entry["dtype"] == "BF16":
                array = (array.astype("<u4") << 16).view("<f4")
            arrays[name] = (array.astype(np.float32) if kinds is FLOATS else array).reshape(entry["shape"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Malformed(f"the model is no safetensors file with a configuration: {error!r}") from error
    return config, arrays


def gelu(x):
    """The exact one, by the error function."""
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


class HuvrSiren:
    """A model of method 4, computed in `f64`."""

    SINES = 3
    MODULATIONS = {
        "amplitude-shift": ("amplitudes", "phases"),
        "amplitude": ("amplitudes",),
        "shift": ("phases",),
        "incode": ("incode",),
    }

    def __init__(self, data):
        config, self.arrays = read_safetensors(data, "config", tomllib.loads, FLOATS)
        try:
            method = config["method"]
            require(method["kind"] == "huvr-siren", f"a model of kind {method['kind']}", Unsupported)
            decoder = method["decoder"]
            self.side, self.patch = method["side"], method["patch"]
            self.channels, self.siren_width = method["bottleneck"], method["siren_width"]
            self.omega, self.modulation = float(method["omega"]), method["modulation"]
            self.width, self.depth, self.hidden = decoder["width"], decoder["depth"], decoder["hidden"]
            self.heads = decoder["attention_heads"]
        except (KeyError, TypeError, ValueError) as error:
            raise Unsupported(f"a configuration that this reader does not know: {error!r}") from error
        sizes = self.side, self.patch, self.channels, self.siren_width, self.width, self.hidden
        require(all(type(n) is int for n in (*sizes, self.depth, self.heads)), "a size that is no integer", Unsupported)
        require(all(1 <= n <= MAX_MODEL_SIZE for n in sizes), "a size of the model beyond reason")
        require(0 <= self.depth <= MAX_MODEL_SIZE, "a depth beyond reason")
        require(self.side % self.patch == 0, "patches do not divide the side")
        require(self.heads == 0 or self.heads > 0 and self.width % self.heads == 0, "heads do not divide the width")
        require(self.modulation in self.MODULATIONS, f"modulation {self.modulation}", Unsupported)
        self.across = self.side // self.patch
        self.count = 1 + self.across**2
        alphabets = {2: 3, 4: 15, 8: 255, 16: 256}
        self.tables = {bits: self.read_tables(bits, count) for bits, count in alphabets.items()}

    def array(self, name, *shape):
        """An array that must be there with this shape."""
        require(name in self.arrays, f"the model has no {name}")
        require(self.arrays[name].shape == shape, f"{name} has another shape")
        return self.arrays[name].astype(np.float64)

    def read_tables(self, bits, count):
        """For each channel the cumulative frequencies of its symbols, and 65536."""
        table = self.array(f"tables.int{bits}", self.channels, count)
        require(np.all((table >= 1) & (table <= 65535) & (table == np.floor(table))), "a value of a table")
        require(np.all(table.sum(1) == 65536), "a table with another sum")
        return [[0, *accumulate(row)] for row in table.astype(int).tolist()]

    def dense(self, x, name, inputs, outputs, bias=True):
        """Weights and bias."""
        y = x @ self.array(f"HuvrSiren.{name}.weight", inputs, outputs)
        return y + self.array(f"HuvrSiren.{name}.bias", outputs) if bias else y

    def norm(self, x, name):
        """The layer norm over the last axis."""
        size = x.shape[-1]
        y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return y * self.array(f"HuvrSiren.{name}.weight", size) + self.array(f"HuvrSiren.{name}.bias", size)

    def head(self, x, name, outputs):
        """A norm and a dense layer."""
        return self.dense(self.norm(x, f"{name}.norm"), f"{name}.dense", x.shape[-1], outputs)

    def attention(self, x, name):
        """Attention over all tokens of the tile."""
        made = [self.dense(x, f"{name}.{part}", self.width, self.width, False) for part in ("query", "key", "value")]
        q, k, v = (y.reshape(len(x), self.heads, -1).swapaxes(0, 1) for y in made)
        scores = q @ k.swapaxes(1, 2) / math.sqrt(self.width / self.heads)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = weights / weights.sum(-1, keepdims=True) @ v
        return self.dense(mixed.swapaxes(0, 1).reshape(len(x), self.width), f"{name}.output", self.width, self.width)

    def decode(self, tokens):
        """The state of each token."""
        x = tokens if self.channels == self.width else self.head(tokens, "up", self.width)
        for layer in range(self.depth):
            name = f"decoder.layers.{layer}"
            x = x + (self.attention(self.norm(x, f"{name}.attention_norm"), f"{name}.attention") if self.heads else x)
            inner = gelu(self.dense(self.norm(x, f"{name}.norm"), f"{name}.inner", self.width, self.hidden))
            x = x + self.dense(inner, f"{name}.outer", self.hidden, self.width)
        return x

    def modulations(self, x, layer):
        """Amplitude, frequency, phase and offset of a layer of sines for each patch."""
        if self.modulation == "incode":
            a, b, c, d = np.split(self.head(x, f"incode.{layer}", 4 * self.siren_width), 4, -1)
            return np.exp(np.clip(a, -5, 5)), np.exp(np.clip(b, -5, 5)), c, d
        made = {name: self.head(x, f"{name}.{layer}", self.siren_width) for name in self.MODULATIONS[self.modulation]}
        none = np.zeros((len(x), self.siren_width))
        return made.get("amplitudes", none + 1), none + 1, made.get("phases", none), none

    def sines(self, x):
        """Normalised values of patches with states x, [patch, row, column], two pixels beyond each border."""
        positions = -1 + (2 * np.arange(-2, self.patch + 2) + 1) / self.patch
        h = np.stack(np.meshgrid(positions, positions, indexing="ij"), -1).reshape(1, -1, 2)
        for layer in range(self.SINES):
            amplitude, frequency, phase, offset = (m[:, None] for m in self.modulations(x, layer))
            u = self.dense(h, f"siren.layers.{layer}", h.shape[-1], self.siren_width)
            h = amplitude * np.sin(self.omega * u * frequency + phase) + offset
        f = self.dense(h, f"siren.layers.{self.SINES}", self.siren_width, 1)
        return (0.5 * f + 0.5).reshape(len(x), len(positions), len(positions))

    def blend_weights(self):
        """The weight of each pixel of each patch in each pixel of the tile, along one axis (section 13.4)."""
        p, size = self.patch, self.patch + 4
        weights = np.zeros((self.side, self.across * size))
        for i in range(self.side):
            border = math.floor((i + 0.5) / p + 0.5)
            distance = i + 0.5 - border * p
            found = [(i // p, 1.0)]
            if 1 <= border < self.across and abs(distance) < 2:
                t = (distance + 2) / 4
                w = t * t * t * (t * (6 * t - 15) + 10)
                found = [(border - 1, 1 - w), (border, w)]
            for patch, weight in found:
                weights[i, patch * size + i - patch * p + 2] = weight
        return weights

    def values(self, tokens):
        """The square of normalised values."""
        states = self.decode(tokens.astype(np.float64))[1:].reshape(self.across, self.across, -1)
        strips = [self.sines(row).swapaxes(0, 1).reshape(self.patch + 4, -1) for row in states]
        weights = self.blend_weights()
        return weights @ np.concatenate(strips) @ weights.T


# Appendix F: the context codec

PHASES = ((0, 0), (1, 1), (0, 1), (1, 0))  # parities of row and column
THRESHOLDS = np.array(
    [
        *(3, 7, 11, 15, 19, 23, 27, 32, 36, 41, 46, 51, 56, 61, 67, 73, 79, 85, 92, 99, 107, 115, 123, 132, 142, 152),
        *(162, 173, 185, 198, 211, 225, 240, 256, 273, 291, 310, 331, 353, 376, 400, 426, 454, 484, 515, 548, 584, 622),
        *(662, 705, 751, 799, 851, 906, 964, 1027, 1093, 1163, 1239, 1319, 1404, 1494, 1591, 1693, 1803, 1919, 2043),
        *(2174, 2315, 2464, 2623, 2792, 2972, 3164, 3368, 3585, 3816, 4062, 4324, 4603, 4900, 5216, 5553, 5911, 6292),
        *(6698, 7130, 7590, 8079, 8600, 9155, 9745, 10374, 11043, 11755, 12513, 13320, 14179, 15093, 16067, 17103),
        *(18206, 19380, 20630, 21961, 23377, 24885, 26489, 28198, 30016, 31952, 34013, 36207, 38542, 41027, 43674),
        *(46490, 49488, 52680, 56078, 59694, 63544, 67643, 72005, 76649, 81592, 86855),
    ]
)


def companded(x):
    """From −127 to 127: how many thresholds the magnitude reaches, with the sign."""
    x = np.clip(x, -THRESHOLDS[-1], THRESHOLDS[-1])  # −2^63 has no magnitude of 64 bits
    return np.sign(x) * np.searchsorted(THRESHOLDS, np.abs(x), "right")


def scaled(factor, x):
    """T of appendix F.1."""
    return (factor * x + 32768) >> 16


def inverse_rows(even, odd, lossless):
    """The inverse transform along columns: an image from its even and its odd rows."""
    if not len(odd):
        return even
    even, odd, image = even.copy(), odd.copy(), np.zeros((len(even) + len(odd), even.shape[1]), np.int64)
    i, j = np.arange(len(even)), np.arange(len(odd))

    def by_even():
        """For each odd row the sum of its neighbours."""
        return even[j] + even[np.minimum(j + 1, i[-1])]

    def by_odd():
        """For each even row the sum of its neighbours."""
        return odd[np.maximum(i - 1, 0)] + odd[np.minimum(i, j[-1])]

    if lossless:
        even -= (by_odd() + 2) >> 2
        odd += by_even() >> 1
    else:
        for factor, factor_of_odd in ((29066, 57862), (-3472, -103949)):
            even -= scaled(factor, by_odd())
            odd -= scaled(factor_of_odd, by_even())
    image[::2], image[1::2] = even, odd
    return image


def inverse_transform(ll, bands, lossless):
    """The image of its subbands."""
    hl, lh, hh = bands
    if not lossless and len(ll) + len(lh) > 1 and ll.shape[1] + hl.shape[1] > 1:
        ll, hh = scaled(49589, ll), scaled(86612, hh)
    even, odd = inverse_rows(ll, lh, lossless), inverse_rows(hl, hh, lossless)
    return inverse_rows(even.T, odd.T, lossless).T


def activations(sums):
    """Outputs of a layer."""
    return np.clip((sums + 32) >> 6, 0, 127)


def window(plane, radius, rows, columns):
    """The values around all positions of two ranges, of a plane that has `radius` more pixels on each side."""
    return [
        plane[rows.start + dy : rows.stop + dy : rows.step, columns.start + dx : columns.stop + dx : columns.step]
        for dy in range(2 * radius + 1)
        for dx in range(2 * radius + 1)
    ]


def refined_planes(seen):
    """Planes 0 to 5, from the context image."""
    (height, width), padded = seen.shape, np.pad(seen, 2, "edge")

    def at(x, y):
        """The context image, shifted."""
        return padded[2 + y : 2 + y + height, 2 + x : 2 + x + width]

    around = sum(at(x, y) for y in (-1, 0, 1) for x in (-1, 0, 1)) - seen
    return [
        companded((8 * seen - around) >> 3),
        companded(at(-1, 0) - 2 * seen + at(1, 0)),
        companded(at(0, -1) - 2 * seen + at(0, 1)),
        companded((at(-1, -1) - at(1, -1) - at(-1, 1) + at(1, 1)) >> 2),
        companded(at(2, 0) - 3 * at(1, 0) + 3 * seen - at(-1, 0)),
        companded(at(0, 2) - 3 * at(0, 1) + 3 * seen - at(0, -1)),
    ]


def coarser_plane(band, height, width):
    """Plane 6, 7 or 8, from a band of the next coarser level."""
    if not band.size:
        return np.zeros((height, width), np.int64)
    rows, columns = (np.minimum(np.arange(n) // 2, m - 1) for n, m in zip((height, width), band.shape))
    return companded(64 * band[np.ix_(rows, columns)])


class ContextCodec:
    """A model of method 5, in exact integers."""

    def __init__(self, data):
        sizes, arrays = read_safetensors(data, "terrane.context", json.loads, INTEGERS)
        names = "reach", "stem", "trunk", "hidden", "last", "dequantiser"
        require(isinstance(sizes, dict) and all(type(sizes.get(name)) is int for name in names), "sizes of the model")
        self.radius, stem, trunk, hidden, last, self.dequantiser = (sizes[name] for name in names)
        require(self.radius in (1, 2), "another radius")
        require(all(1 <= n <= MAX_CONTEXT_SIZE for n in (stem, trunk, hidden, last)), "a size beyond reason")
        require(0 <= self.dequantiser <= MAX_CONTEXT_SIZE, "a size beyond reason")

        def array(name, kind, *shape):
            """An array that must be there with this type and shape."""
            require(name in arrays, f"the model has no {name}")
            require(arrays[name].dtype == kind, f"{name} has another type")
            require(arrays[name].shape == shape, f"{name} has another shape")
            return arrays[name].astype(np.int64)

        layers = {"trunk.0": (10 + 9 * (2 * self.radius + 1) ** 2, stem), "trunk.1": (stem, trunk)}
        for band in range(3):
            for phase in range(4):
                inputs = trunk + 18 * band + 2 * len(self.known(phase))
                layers |= {f"head.{band}.{phase}.0": (inputs, hidden), f"head.{band}.{phase}.1": (hidden, last)}
                layers |= {f"head.{band}.{phase}.2": (last, 2)}
        if self.dequantiser:
            layers |= {"dequantiser.0": (trunk + 27, self.dequantiser), "dequantiser.1": (self.dequantiser, 3)}
        self.layers = {}
        for name, (inputs, outputs) in layers.items():
            weight, bias = array(f"{name}.weight", "i1", outputs, inputs), array(f"{name}.bias", "<i4", outputs)
            require(np.all(127 * np.abs(weight).sum(1) + np.abs(bias) + 64 < 2**24), f"{name} has too large sums")
            self.layers[name] = weight, bias

        self.centres = array("tables.centre", "<i4", 48 * 13).tolist()
        self.radii = array("tables.radius", "u1", 48 * 13).tolist()
        ends = [*accumulate((2 * radius + 3 for radius in self.radii), initial=0)]
        frequencies = array("tables.size", "<u2", ends[-1]).tolist()
        require(min(frequencies) >= 1, "a frequency of 0")
        self.tables = [[*accumulate(frequencies[a:b], initial=0)] for a, b in zip(ends, ends[1:])]
        require(all(cumulative[-1] == 65536 for cumulative in self.tables), "a table with another sum")

    @staticmethod
    def known(phase):
        """Which of the nine positions of a window have a phase before this one."""
        y, x = PHASES[phase]
        return [i for i in range(9) if PHASES.index(((y + i // 3 + 1) % 2, (x + i % 3 + 1) % 2)) < phase]

    def sums(self, name, inputs):
        """The sums of a layer, [output, row, column], of inputs that are images or, but for the last, numbers."""
        weight, bias = self.layers[name]
        sums = np.zeros((len(bias), *inputs[-1].shape), np.int64) + bias[:, None, None]
        for column, values in zip(weight.T[:, :, None, None], inputs, strict=True):
            sums += column * values
        return sums

    def trunk(self, seen, level, coarser):
        """The trunk's outputs at all positions of a level, given the bands of the next coarser one, if any."""
        height, width = seen.shape
        bands = coarser or [np.zeros((0, 0), np.int64)] * 3
        planes = refined_planes(seen) + [coarser_plane(band, height, width) for band in bands]
        means = [64 * int(np.abs(band).astype(object).sum()) // band.size if band.size else 0 for band in bands]
        inputs = [64 * (i == min(level, 5)) for i in range(6)] + [companded(mean) for mean in means]
        inputs.append(0 if coarser else 64)
        for plane in planes:
            inputs += window(np.pad(plane, self.radius), self.radius, range(height), range(width))
        return activations(self.sums("trunk.1", activations(self.sums("trunk.0", inputs))))

    def symbol(self, coder, mean, scale):
        """One symbol (F.3)."""
        shift = -(-max(scale - 47, 0) // 6)
        table = (scale - 6 * shift) * 13 + abs(mean)
        centre, radius = self.centres[table], self.radii[table]
        k = coder.symbol(self.tables[table])
        value = centre - radius - 1 + k
        if k in (0, 2 * radius + 2):
            n = min(coder.raw(6), 62)
            more = 2**n + coder.raw(n) - 1
            value = signed(value + more if k else value - more)
        if shift:
            value = signed((value << shift) + coder.raw(shift) - 2 ** (shift - 1))
        if mean < 0:
            value = signed(-value)
        return min(max(value, -MAX_SYMBOL), MAX_SYMBOL)

    def band(self, coder, trunk, planes, symbols):
        """Reads the symbols of the next band, phase by phase, and adds its plane to those of the bands before."""
        number, (height, width) = len(planes), symbols.shape
        plane = np.zeros((trunk.shape[1] + 2, trunk.shape[2] + 2), np.int64)
        planes.append(plane)
        for phase, (y, x) in enumerate(PHASES):
            rows, columns = range(y, height, 2), range(x, width, 2)
            if not rows or not columns:
                continue
            inputs = [*trunk[:, y:height:2, x:width:2]]
            for other in planes[:-1]:
                values = window(other, 1, rows, columns)
                inputs += values + [np.abs(v) for v in values]
            values = window(plane, 1, rows, columns)
            values = [values[i] for i in self.known(phase)]
            inputs += values + [np.abs(v) for v in values]
            for layer in range(2):
                inputs = activations(self.sums(f"head.{number}.{phase}.{layer}", inputs))
            m, s = self.sums(f"head.{number}.{phase}.2", inputs)
            means = np.clip((m + 256) >> 9, -12, 12).ravel().tolist()
            scales = np.clip(20 + ((s + 128) >> 8), 0, 263).ravel().tolist()
            found = [self.symbol(coder, mean, scale) for mean, scale in zip(means, scales)]
            symbols[y::2, x::2] = np.array(found, np.int64).reshape(len(rows), len(columns))
            plane[1 : height + 1, 1 : width + 1] = companded(64 * symbols)

    def offsets(self, trunk, planes):
        """What is added to 64 times each symbol, for the three bands at all positions (F.6)."""
        inputs, (_, height, width) = [*trunk], trunk.shape
        for plane in planes:
            inputs += window(plane, 1, range(height), range(width))
        sums = self.sums("dequantiser.1", activations(self.sums("dequantiser.0", inputs)))
        return np.clip((sums + 16) >> 5, -32, 32)

    def decode(self, data, width, height, lossless):
        """The integers U of a window (F.2)."""
        coder, sizes = RangeDecoder(data), []
        while max(width, height) > 8:
            sizes.append((height, width))
            width, height = -(-width // 2), -(-height // 2)
        ll = read_integers(coder, width, height, True)
        require((ll >= -MAX_SYMBOL).all() and (ll <= MAX_SYMBOL).all(), "an LL band out of range")
        substeps = 1 if lossless else 64
        seen = decoded = substeps * ll
        coarser = None
        for level in range(len(sizes) - 1, -1, -1):
            height, width = sizes[level]
            shapes = (-(-height // 2), width // 2), (height // 2, -(-width // 2)), (height // 2, width // 2)
            bands, planes, trunk = [np.zeros(shape, np.int64) for shape in shapes], [], None
            for symbols in bands:
                if symbols.size and not coder.raw(1):
                    trunk = self.trunk(seen * (64 // substeps), level, coarser) if trunk is None else trunk
                    self.band(coder, trunk, planes, symbols)
                else:
                    planes.append(np.zeros((len(seen) + 2, seen.shape[1] + 2), np.int64))
            rounded = [substeps * symbols for symbols in bands]
            if not lossless:
                corrected = rounded
                if self.dequantiser and trunk is not None:
                    offsets = self.offsets(trunk, planes)
                    corrected = [b + offset[: len(b), : b.shape[1]] for b, offset in zip(rounded, offsets)]
                decoded = inverse_transform(decoded, corrected, lossless)
            seen, coarser = inverse_transform(seen, rounded, lossless), bands
        coder.end()
        return seen if lossless else decoded


# Sections 9, 10 and 13: pages, records and heights


@dataclass
class Tile:
    """A decoded tile: all arrays are [height, width], but symbols of tokens are [count, channels].

    The symbols of a wavelet layer are the integers U of appendix F.
    """

    missing: np.ndarray
    symbols: np.ndarray
    residual: np.ndarray | None
    heights: np.ndarray
    errors: tuple
    extremes: tuple


class Terrain:
    """A terrane file, from its bytes, and those of its model where it is not embedded."""

    def __init__(self, data, model=None):
        self.data, self.given = data, model
        self.head = Head(data[:HEAD], len(data))
        self.pages = {}

    def part(self, offset, length):
        """The bytes of a part after the head."""
        require(offset >= HEAD and offset + length <= len(self.data), "outside the file")
        return self.data[offset : offset + length]

    def page(self, index):
        """Offset and length of the record of each tile of a page; None without data."""
        if index not in self.pages:
            head, page = self.head, self.head.root[index]
            data = self.part(page.offset, page.length)
            require(crc32c(data) == page.checksum, "wrong checksum of a page")
            tiles = min(head.tiles_per_page, head.tiles - index * head.tiles_per_page)
            require(len(data) >= tiles, "a page with fewer bytes than tiles")
            cursor, end, entries = Cursor(data), 0, []
            for _ in range(tiles):
                length = cursor.varint()
                require(length <= MAX_RECORD, "bytes of a record", LimitExceeded)
                if length:
                    offset = (end + cursor.zigzag()) % 2**64
                    end = offset + length
                    require(end < 2**64, "a record beyond 2^64")
                entries.append((offset, length) if length else None)
            cursor.end()
            self.pages[index] = entries
        return self.pages[index]

    def record(self, number):
        """The checked record of a tile, after its checksum; None without data."""
        entry = self.page(number // self.head.tiles_per_page)[number % self.head.tiles_per_page]
        if entry is None:
            return None
        cursor = Cursor(self.part(*entry))
        checksum, rest = cursor.number("I"), cursor.rest()
        require(crc32c(number.to_bytes(8, "little") + rest) == checksum, "wrong checksum of a record")
        return rest

    def embedded_model(self):
        """The checked bytes of the embedded model; None where there is none."""
        entry = self.head.model
        if not entry or not entry.length:
            return None
        data = self.part(entry.offset, entry.length)
        require(crc32c(data) == entry.checksum, "wrong checksum of the model")
        return data

    @cached_property
    def model(self):
        """The model, embedded or given."""
        require(self.head.method, "tokens or wavelet coefficients in a file without a model")
        data = self.embedded_model() or self.given
        if data is None:
            raise NoModel(self.head.model.name)
        require(hashlib.sha256(data).digest() == self.head.model.sha256, "another SHA-256 of the model")
        if self.head.method == 5:
            return ContextCodec(data)
        model = HuvrSiren(data)
        require(self.head.method == 4, "a model of another method")
        require(model.side == self.head.side, "the model has another side")
        return model

    def check(self):
        """Checks all checksums, and that each byte of the file belongs to exactly one part."""
        parts = [(page.offset, page.length) for page in self.head.root]
        if self.embedded_model():
            parts.append((self.head.model.offset, self.head.model.length))
        for number in range(self.head.tiles):
            self.record(number)
        parts += [entry for index in range(len(self.head.root)) for entry in self.page(index) if entry]
        end = HEAD
        for offset, length in sorted(parts):
            require(offset == end, "a gap or an overlap of parts")
            end += length
        require(end == len(self.data), "a gap at the end of the file")

    def tile(self, level, column, row):
        """A decoded tile; None without data."""
        grid, side = self.head.levels[level], self.head.side
        record = self.record(grid.first + row * grid.columns + column)
        if record is None:
            return None
        width, height = min(side, grid.width - column * side), min(side, grid.height - row * side)
        cursor = Cursor(record)
        kind, flags, *statistics = cursor.numbers("BB4f")
        require(kind <= 2, f"kind {kind}", Unsupported)
        require(flags < 4, "reserved bits of a record", Unsupported)
        require(kind != 1 or self.head.method != 5, "tokens in a file of wavelet layers")
        require(kind != 2 or self.head.method == 5, "a wavelet layer in a file of another method")
        require(kind or not flags & 2, "a residual with integers")
        missing = decode_mask(cursor.block(), width, height) if flags & 1 else np.zeros((height, width), bool)
        layer = Cursor(cursor.block())
        require(kind != 2 or not flags & 2 or layer.data[:1] != b"\1", "a residual with a lossless wavelet layer")
        symbols, heights = (self.integers, self.tokens, self.wavelet)[kind](layer, missing)
        residual = None
        if flags & 2:
            step = cursor.number("d")
            require(step > 0 and math.isfinite(step), "step of the residual")
            residual = decode_integers(cursor.rest(), width, height, False, missing)
            heights = heights + residual.astype(np.float64) * step
        cursor.end()
        heights[missing] = np.nan
        require(np.isfinite(heights[~missing]).all(), "a height that is not finite")
        return Tile(missing, symbols, residual, heights, tuple(statistics[:2]), tuple(statistics[2:]))

    def integers(self, layer, missing):
        """Integers and heights of a layer of integers."""
        height, width = missing.shape
        origin, step = layer.numbers("dd")
        require(math.isfinite(origin), "an origin that is not finite")
        require(step in (0, -1) or step > 0 and math.isfinite(step), "step of the integers")
        integers = decode_integers(layer.rest(), width, height, True, missing)
        if step > 0:
            heights = origin + integers.astype(np.float64) * step
        elif step == 0:
            v = np.where(missing, 0, integers)
            require((v >= -(2**31)).all() and (v < 2**31).all(), "an integer beyond the bits of an f32")
            bits = np.where(v >= 0, v, ~v | 2**31)
            heights = bits.astype(np.uint32).view(np.float32).astype(np.float64)
        else:
            heights = np.where(integers >= 0, integers, ~integers | np.int64(-(2**63))).view(np.float64)
        if self.head.bound == 3:
            heights = heights.astype(np.float32).astype(np.float64)
        return integers, heights

    def tokens(self, layer, missing):
        """Symbols and heights of a layer of tokens."""
        height, width = missing.shape
        coding, bits, low, span = layer.numbers("BBff")
        require(coding <= 2, f"coding {coding}", Unsupported)
        require(bits in (2, 4, 8, 16), "bits of a symbol")
        steps = np.array(layer.numbers(f"{self.model.channels}e"), np.float32)
        require(np.isfinite([low, span, *steps]).all(), "low, range or a step that is not finite")
        symbols = decode_symbols(layer.rest(), coding, bits, self.model)
        values = self.model.values(symbols.astype(np.float32) * steps)
        return symbols, low + span * values[:height, :width]

    def wavelet(self, layer, missing):
        """Integers and heights of a wavelet layer."""
        height, width = missing.shape
        transform = layer.number("B")
        require(transform <= 1, f"transform {transform}", Unsupported)
        step, offset = layer.number("fd"[transform]), layer.zigzag()
        require(step > 0 and math.isfinite(step), "step of the wavelet layer")
        integers = self.model.decode(layer.rest(), width, height, bool(transform))
        if not transform:
            return integers, (integers + signed(64 * offset)).astype(np.float64) * (step / 64)
        heights = (integers + offset).astype(np.float64) * step
        if self.head.bound == 3:
            heights = heights.astype(np.float32).astype(np.float64)
        return integers, heights

    def tiles(self, level):
        """Row, column and tile of all tiles of a level, in the order of their numbers."""
        grid = self.head.levels[level]
        for row in range(grid.rows):
            for column in range(grid.columns):
                yield row, column, self.tile(level, column, row)
