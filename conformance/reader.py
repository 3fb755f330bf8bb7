"""A reader of terrane files, version 1, written from spec/terrane-1.md alone. Needs NumPy."""

import hashlib
import json
import math
import struct
import tomllib
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain

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

MIN_HEAD, MAX_HEAD = 164, 16384
MAX_RASTER_SIDE = 2**30
MIN_SIDE, MAX_SIDE = 16, 4096
MAX_LEVELS = 24
MAX_TILES = 2**30
MAX_PAGES = 512
MAX_RECORD = 2**30
MAX_PAGE = 2**24
MAX_MODEL = 2**34
MAX_MODEL_SIZE = 16384  # section 16: beyond reason
MAX_SYMBOL = 2**40  # appendix F.2
MAX_COARSER = 65535  # section 10.4


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
    """The chunk MODL; offset, length and checksum only where the model is embedded."""

    sha256: bytes
    name: str
    address: str
    embedded: tuple | None


@dataclass
class Level:
    """The size of a level, its grid of tiles, the number of its first tile, and where it lies in its storey."""

    width: int
    height: int
    columns: int
    rows: int
    first: int
    depth: int
    root: int


@dataclass
class Place:
    """Where a tile lies: its number, tree, depth and window, and which part of the tile above it covers."""

    level: int
    column: int
    row: int
    number: int
    tree: int
    depth: int
    width: int
    height: int
    is_root: bool
    x0: int
    y0: int


class Pyramid:
    """The levels, tiles and trees of a raster (section 8)."""

    def __init__(self, columns, rows, side, levels):
        self.side, self.levels, self.tiles = side, [], 0
        storey = next(s for s in (4, 3, 2, 1) if side * 2 ** (s - 1) <= MAX_SIDE)
        for k in range(levels):
            width, height = -(-columns // 2**k), -(-rows // 2**k)
            across, down = -(-width // side), -(-height // side)
            root = min(k - k % storey + storey - 1, levels - 1)
            self.levels.append(Level(width, height, across, down, self.tiles, k % storey, root))
            self.tiles += across * down
        self.first_trees, self.trees = {}, 0  # the first tree of each level of roots
        for k, level in enumerate(self.levels):
            if level.root == k:
                self.first_trees[k] = self.trees
                self.trees += level.columns * level.rows

    def tree(self, number):
        """The numbers of the tiles of a tree, in its order."""
        k = max(k for k, first in self.first_trees.items() if first <= number)
        r, c = divmod(number - self.first_trees[k], self.levels[k].columns)
        tiles = []
        for finer in range(k, k - self.levels[k].depth - 1, -1):
            level, n = self.levels[finer], 2 ** (k - finer)
            for row in range(r * n, min((r + 1) * n, level.rows)):
                for column in range(c * n, min((c + 1) * n, level.columns)):
                    tiles.append(level.first + row * level.columns + column)
        return tiles

    def place(self, k, column, row):
        """Where a tile lies."""
        level, side = self.levels[k], self.side
        number = level.first + row * level.columns + column
        n = 2 ** (level.root - k)
        tree = self.first_trees[level.root] + row // n * self.levels[level.root].columns + column // n
        width, height = min(side, level.width - column * side), min(side, level.height - row * side)
        x0, y0 = column % 2 * side // 2, row % 2 * side // 2
        return Place(k, column, row, number, tree, level.depth, width, height, k == level.root, x0, y0)


class Head:
    """The first bytes of a file, given all of its bytes."""

    def __init__(self, data):
        require(data[:8] == b"\x89TRN\r\n\x1a\n", "other magic")
        require(len(data) >= 12, "fewer than 12 bytes")
        version, self.size = struct.unpack("<HH", data[8:12])
        require(version == 1, f"version {version}", Unsupported)
        require(MIN_HEAD <= self.size <= MAX_HEAD, f"a head of {self.size} bytes")
        require(len(data) >= self.size, "fewer bytes than the head has")
        end = self.size - 4
        require(crc32c(data[:end]) == int.from_bytes(data[end : self.size], "little"), "wrong checksum of the head")
        cursor = Cursor(data[:end])
        _, _, _, pages, self.length = cursor.numbers("8sHHIQ")
        self.columns, self.rows, self.side, levels, self.method = cursor.numbers("IIHBB")
        self.trees_per_page, self.bound = cursor.numbers("IB")
        self.georeferenced, self.points = cursor.flag(), cursor.flag()
        reserved = cursor.take(5)
        self.transform = cursor.numbers("6d")
        self.max_error, self.rms_error, self.largest_error, self.lowest, self.highest = cursor.numbers("5d")
        self.valid_pixels, self.records = cursor.numbers("QQ")
        self.horizontal, self.vertical = cursor.numbers("II")

        require(not any(reserved), "reserved field not 0")
        require(self.method <= 5, f"method {self.method}", Unsupported)
        require(self.bound <= 3, f"error bound {self.bound}", Unsupported)
        require(self.columns and self.rows, "a raster without pixels")
        require(max(self.columns, self.rows) <= MAX_RASTER_SIDE, "columns or rows", LimitExceeded)
        require(MIN_SIDE <= self.side <= MAX_SIDE, "side", LimitExceeded)
        require(self.side % 2 == 0, "an odd side")
        require(1 <= levels <= MAX_LEVELS, "levels", LimitExceeded)
        self.pyramid = Pyramid(self.columns, self.rows, self.side, levels)
        self.levels, self.trees = self.pyramid.levels, self.pyramid.trees
        require(self.pyramid.tiles <= MAX_TILES, "tiles", LimitExceeded)
        require(pages <= MAX_PAGES, "pages", LimitExceeded)
        require(self.trees_per_page and pages == -(-self.trees // self.trees_per_page), "pages do not cover the trees")

        self.geo_keys, self.samples, self.wkt = ((), (), ""), (None, 1.0, 0.0, "float32", "", ""), ""
        self.qualities = None if levels > 1 else []
        self.model = None
        self.root = None
        self.chunks(cursor)
        require(self.root is not None, "no ROOT")
        require(len(self.root) == pages, "ROOT of another size")
        require(self.qualities is not None, "no LEVL")
        require(self.model or not self.method, "no MODL")
        require(self.length == len(data), "another length of the file")
        end = self.size
        for page in sorted(self.root, key=lambda page: page.offset):
            require(page.offset >= end, "a page overlaps another or the head")
            end = page.offset + page.length
        require(end <= self.length, "a page outside the file")

    def chunks(self, cursor):
        """Reads all chunks; they fill the head."""
        known = {b"GEOK": self.read_geok, b"SAMP": self.read_samp, b"LEVL": self.read_levl, b"wkt2": self.read_wkt2}
        known |= {b"MODL": self.read_modl, b"ROOT": self.read_root}
        seen = set()
        while cursor.left():
            tag, length = cursor.numbers("4sI")
            require(tag not in seen, f"{tag} comes twice")
            seen.add(tag)
            content = Cursor(cursor.take(length))
            if tag in known:
                known[tag](content)
                content.end()
            else:
                require(b"a" <= tag[:1] <= b"z", f"unknown chunk {tag}", Unsupported)

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

    def read_levl(self, content):
        """Root mean square and largest difference of each level above 0 from means of the source."""
        self.qualities = [content.numbers("ff") for _ in self.levels[1:]]

    def read_wkt2(self, content):
        """The coordinate system."""
        self.wkt = utf8(content.rest())

    def read_modl(self, content):
        """What the model is, and where; without a meaning in a file without a method that needs one."""
        if not self.method:
            content.rest()
            return
        sha256, name, address = content.take(32), content.text(), content.text()
        embedded = content.numbers("QQI") if content.flag() else None
        require(not embedded or embedded[1] <= MAX_MODEL, "bytes of the model", LimitExceeded)
        self.model = ModelEntry(sha256, name, address, embedded)

    def read_root(self, content):
        """Where the pages of the index are."""
        require(content.left() % 16 == 0, "ROOT of another size")
        self.root = [Page(*content.numbers("QII")) for _ in range(content.left() // 16)]
        require(all(page.length <= MAX_PAGE for page in self.root), "bytes of a page", LimitExceeded)


# Section 11: the entropy coder


class EntropyDecoder:
    """Decodes one coded stream."""

    LOWEST = 2**18  # a state below takes a word

    def __init__(self, data, lanes=1):
        self.data, self.offset, self.states = data, len(data) % 2, [0] * lanes
        if self.offset:
            self.states[0] = data[0]
        for lane in range(lanes):
            while self.states[lane] < self.LOWEST and self.offset < len(data):
                self.take(lane)

    @staticmethod
    def of_picture(data):
        """Decodes the stream of a picture, which has lanes by its length."""
        return EntropyDecoder(data, 1 if len(data) < 2048 else 2 if len(data) < 5120 else 4)

    def take(self, lane):
        """Fills a state up with the next word."""
        word = self.data[self.offset] | self.data[self.offset + 1] << 8
        self.states[lane] = self.states[lane] << 16 | word
        self.offset += 2

    def decode_target(self, lane=0):
        """The cumulative frequency that the next symbol covers."""
        return self.states[lane] & 0xFFFF

    def consume(self, cumulative, frequency, lane=0):
        """Consumes the symbol with this cumulative frequency and frequency."""
        state = self.states[lane]
        self.states[lane] = frequency * (state >> 16) + (state & 0xFFFF) - cumulative
        if self.states[lane] < self.LOWEST and self.offset < len(self.data):
            self.take(lane)

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

    def raw(self, count, lane=0):
        """So many equally likely bits."""
        value = 0
        while count > 0:
            k = min(count, 16)
            count -= k
            bits = self.decode_target(lane) >> (16 - k)
            self.consume(bits << (16 - k), 1 << (16 - k), lane)
            value = value << k | bits
        return value

    def symbol(self, cumulative, lane=0):
        """A symbol of a table, given the cumulative frequencies of its symbols and 65536."""
        k = bisect_right(cumulative, self.decode_target(lane)) - 1
        self.consume(cumulative[k], cumulative[k + 1] - cumulative[k], lane)
        return k

    def end(self):
        """Requires that the stream ends here."""
        lanes, length = len(self.states), len(self.data)
        first = self.LOWEST if lanes > 1 else 0
        require(all(state == first for state in self.states), "a coded stream that does not end with its last symbol")
        require(not length or self.data[1 - length % 2], "a coded stream that starts with a needless 0")
        filled_up = lanes > 1 and length // 2 * 2 in (2048, 5120) and not any(self.data[self.offset :])
        require(self.offset >= length or filled_up, "a coded stream with bytes left over")


def contexts(count, estimate=32768, seen=0):
    """New contexts of adaptive bits."""
    return [[estimate, estimate, seen] for _ in range(count)]


# Section 12: masks, integers, symbols and corrections


def inherited(missing, x0, y0, width, height):
    """Which pixels of a window lie below missing ones of the tile above."""
    part = missing[y0 : y0 + -(-height // 2), x0 : x0 + -(-width // 2)]
    return part.repeat(2, 0).repeat(2, 1)[:height, :width]


def decode_mask(data, width, height, above=None):
    """Which pixels of a window are missing; `above`: those below missing ones, where there is a tile above."""
    coder, models = EntropyDecoder(data), contexts(1024)
    mask = np.zeros((height + 2, width + 5), int).tolist()  # 2 rows above, 3 columns left, 2 right

    def follows(x, y):
        """Whether the pixel is missing or valid because of the tile above; None where this is not known."""
        if above[y, x]:
            return True
        if (y % 2 or y == height - 1) and (x % 2 or x == width - 1):
            rows, columns = range(y - y % 2, y + 1), range(x - x % 2, x + 1)
            if all(mask[j + 2][i + 3] for j in rows for i in columns if (i, j) != (x, y)):
                return False
        return None

    for y in range(height):
        row, above1, above2 = mask[y + 2], mask[y + 1], mask[y]
        for x in range(3, width + 3):
            known = None if above is None else follows(x - 3, y)
            if known is None:
                context = row[x - 1] << 9 | row[x - 2] << 8 | row[x - 3] << 7
                context |= above1[x + 2] << 6 | above1[x + 1] << 5 | above1[x] << 4 | above1[x - 1] << 3
                context |= above1[x - 2] << 2 | above2[x + 1] << 1 | above2[x]
                known = coder.bit(models[context])
            row[x] = int(known)
    coder.end()
    return np.array(mask, bool)[2:, 3:-2]


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
    coder = EntropyDecoder(data)
    integers = read_integers(coder, width, height, median, missing)
    coder.end()
    return integers


def decode_symbols(data, coding, bits, model):
    """Symbols of the tokens of a tile, [count, channels]."""
    count, channels = model.count, model.channels
    if coding == 0:
        coder, tables, symbols = EntropyDecoder(data), model.tables[bits], []
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


class Corrections:
    """What brings the heights of a tile within its bound (section 12.5)."""

    COARSE, FINE = (1, 10, 23, 32, 32, 23, 10, 1), (7, 32, 32, 7)

    def __init__(self, data, missing):
        cursor = Cursor(data)
        self.step, *self.bumps, self.first = cursor.numbers("fBBB")
        require(self.step > 0 and math.isfinite(self.step), "step of the corrections")
        coder, (height, width) = EntropyDecoder(cursor.rest()), missing.shape
        nothing = np.zeros((-(-height // 4), -(-width // 4)), np.int64)
        self.coarse = self.read(coder, nothing, nothing)
        over_fine = self.coarse.repeat(2, 0).repeat(2, 1)[: -(-height // 2), : -(-width // 2)]
        self.fine = self.read(coder, over_fine != 0, over_fine)
        c = self.coarse.repeat(4, 0).repeat(4, 1)[:height, :width]
        d = self.fine.repeat(2, 0).repeat(2, 1)[:height, :width]
        self.pixels = self.read(coder, (c != 0) + 2 * (d != 0), np.where(d, d, c), missing)
        coder.end()

    @staticmethod
    def read(coder, classes, parents, missing=None):
        """A plane of integers, given the class and the number P of each place."""
        zero, sign, size = contexts(4 * 7, 62000, 4), contexts(3 * 9, 32768, 2), contexts(62, 2000, 4)
        height, width = classes.shape
        classes, parents = classes.astype(int).tolist(), parents.tolist()
        rows, above = [], [0] * (width + 2)  # a column of 0 on either side
        for y in range(height):
            row = [0] * (width + 2)
            for x in range(width):
                if missing is not None and missing[y, x]:
                    continue
                w, n, nw, ne = row[x], above[x + 1], above[x], above[x + 2]
                total = 2 * (w != 0) + 2 * (n != 0) + (nw != 0) + (ne != 0)
                if coder.bit(zero[7 * classes[y][x] + total]):
                    continue
                negative = coder.bit(sign[9 * sign_of(parents[y][x]) + 3 * sign_of(w) + sign_of(n)])
                top = 0
                while top < 62 and coder.bit(size[top]):
                    top += 1
                m = 1 << top | coder.raw(top)
                row[x + 1] = -m if negative else m
            rows.append(row[1:-1])
            above = row
        return np.array(rows, np.int64)

    @staticmethod
    def bumped(grid, profile, shape):
        """The sum of the bumps of a grid at the pixels of a window."""
        size, margin = len(profile) // 2, len(profile) // 4
        sums = np.zeros([size * n + size for n in grid.shape], np.int64)
        for i, p in enumerate(profile):
            for j, q in enumerate(profile):
                rows, columns = (slice(at, at + size * n, size) for at, n in zip((i, j), grid.shape))
                sums[rows, columns] += grid * (p * q)
        return sums[margin:, margin:][: shape[0], : shape[1]]

    def metres(self):
        """What each pixel gets."""
        signs, shape = np.sign(self.pixels), self.pixels.shape
        totals = signs * (1024 * self.first) + (self.pixels - signs) * 131072
        totals += self.bumped(self.coarse * self.bumps[0], self.COARSE, shape)
        totals += self.bumped(self.fine * self.bumps[1], self.FINE, shape)
        return totals.astype(np.float64) * (self.step / 131072)


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
    """From 0 to 127: how many thresholds the magnitude reaches."""
    x = np.clip(x, -THRESHOLDS[-1], THRESHOLDS[-1])  # −2^63 has no magnitude of 64 bits
    return np.searchsorted(THRESHOLDS, np.abs(x), "right")


def parts(x):
    """The positive and the negative part of numbers, companded."""
    return np.stack([np.where(x > 0, companded(x), 0), np.where(x < 0, companded(x), 0)])


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
    if not lossless:
        lines = (len(ll) + len(lh) > 1) + (ll.shape[1] + hl.shape[1] > 1)  # in how many directions there are lines
        ll, hh = scaled((32770, 40312, 49589)[lines], ll), scaled(86612, hh)
    even, odd = inverse_rows(ll, lh, lossless), inverse_rows(hl, hh, lossless)
    return inverse_rows(even.T, odd.T, lossless).T


def features(seen):
    """The six features of a context image, [feature, row, column]."""
    (height, width), padded = seen.shape, np.pad(seen, 2, "edge")

    def at(x, y):
        """The context image, shifted."""
        return padded[2 + y : 2 + y + height, 2 + x : 2 + x + width]

    around = sum(at(x, y) for y in (-1, 0, 1) for x in (-1, 0, 1)) - seen
    return np.stack(
        [
            (8 * seen - around) >> 3,
            at(-1, 0) - 2 * seen + at(1, 0),
            at(0, -1) - 2 * seen + at(0, 1),
            (at(-1, -1) - at(1, -1) - at(-1, 1) + at(1, 1)) >> 2,
            at(2, 0) - 3 * at(1, 0) + 3 * seen - at(-1, 0),
            at(0, 2) - 3 * at(0, 1) + 3 * seen - at(0, -1),
        ]
    )


@dataclass
class Picture:
    """A picture of a tile (F.2); its bands are those of its last level, None where it has none."""

    context: np.ndarray
    decoded: np.ndarray
    bands: list | None
    lossless: bool

    def coarser(self, coarser):
        """The same in steps that are longer by so many 16ths."""
        q = 16 + coarser
        context, decoded = ((32 * v + q) // (2 * q) for v in (self.context, self.decoded))
        return Picture(context, decoded, self.bands, self.lossless)

    @cached_property
    def features(self):
        """The features at all pixels (F.4)."""
        return features(self.context * (64 if self.lossless else 1))


@dataclass
class Part:
    """The part of a picture below which a level lies: all of it or, below another tile, some of it."""

    picture: Picture
    x0: int
    y0: int
    width: int
    height: int

    def of(self, image):
        """The part of an image of the picture's size."""
        return image[self.y0 : self.y0 + self.height, self.x0 : self.x0 + self.width]

    @cached_property
    def bands(self):
        """The pixels that the part has of the picture's bands."""
        rows = slice(self.y0 // 2, -(-(self.y0 + self.height) // 2))
        columns = slice(self.x0 // 2, -(-(self.x0 + self.width) // 2))
        return [band[rows, columns] for band in self.picture.bands or [np.zeros((0, 0), np.int64)] * 3]

    @cached_property
    def parents(self):
        """64 times the symbols of the picture's bands at its pixels, [band, row, column]; 0 where the part has none."""
        parents = np.zeros((3, *self.picture.context.shape), np.int64)
        for parent, band, own in zip(parents, self.picture.bands or [], self.bands):
            if own.size:
                rows, columns = (np.minimum(np.arange(n) // 2, m - 1) for n, m in zip(parent.shape, band.shape))
                parent[:] = 64 * band[np.ix_(rows, columns)]
        return parents

    def constants(self, finer):
        """The 17 constants of a level with so many finer ones."""
        means = [64 * int(np.abs(band).astype(object).sum()) // band.size if band.size else 0 for band in self.bands]
        own = np.stack([self.of(feature) for feature in self.picture.features])
        own = np.abs(np.clip(own, -THRESHOLDS[-1], THRESHOLDS[-1])).sum((1, 2)) // (self.width * self.height)
        classes = [64 * (i == min(finer, 5)) for i in range(6)]
        no_level, lossless = 64 * (not self.picture.bands), 64 * self.picture.lossless
        return [*classes, *(companded(mean) for mean in means), no_level, lossless, *companded(own)]


class Grid:
    """The positions of a level below a part. A map has channels at them, [channel, row, column], and a border of 0."""

    BORDER = 4  # the margin and what layers see beyond it; what heads see beyond the part

    def __init__(self, part):
        self.part, (height, width) = part, part.picture.context.shape
        self.rows = range(-min(part.y0, 2), part.height + min(height - part.y0 - part.height, 2))
        self.columns = range(-min(part.x0, 2), part.width + min(width - part.x0 - part.width, 2))

    def map(self, channels):
        """A map of zeros."""
        return np.zeros((channels, self.part.height + 2 * self.BORDER, self.part.width + 2 * self.BORDER))

    def at(self, channels, rows=None, columns=None, dy=0, dx=0):
        """The channels of a map at positions, all valid ones by default, or beside them."""
        slices = (
            slice(self.BORDER + n.start + by, self.BORDER + n.stop + by, n.step)
            for n, by in ((rows or self.rows, dy), (columns or self.columns, dx))
        )
        return channels[:, *slices]

    def around(self, channels, taps, rows=None, columns=None):
        """The same at each tap in turn."""
        for dy, dx in taps:
            yield self.at(channels, rows, columns, dy, dx)

    def inputs(self):
        """Channels 0 to 19."""
        part, inputs = self.part, self.map(20)
        rows = slice(part.y0 + self.rows.start, part.y0 + self.rows.stop)
        columns = slice(part.x0 + self.columns.start, part.x0 + self.columns.stop)
        seen = [image[rows, columns] for image in (*part.picture.features, *part.parents)]
        self.at(inputs)[:18] = np.concatenate([parts(image) for image in seen])
        return inputs


def taps(radius):
    """All taps of a radius, as rows down and columns right."""
    return [(dy, dx) for dy in range(-radius, radius + 1) for dx in range(-radius, radius + 1)]


def is_known(phase, dy, dx):
    """Whether the phase that a tap leads to is before this one."""
    y, x = PHASES[phase]
    return ((y + dy) % 2, (x + dx) % 2) in PHASES[:phase]


class ContextCodec:
    """A model of method 5. Its sums are in `f64`, which is exact far beyond 2^31 (F.7)."""

    SIZES = {  # least, most, and whether it is a multiple of 4
        "trunk": (4, 512, True),
        "blocks": (0, 16, False),
        "band": (0, 512, True),
        "band_blocks": (0, 16, False),
        "look": (0, 1, False),
        "hidden": (4, 512, True),
        "last": (0, 512, True),
        "dequantiser": (0, 512, True),
        "dequantiser_blocks": (0, 16, False),
        "reach": (1, 4, False),
    }

    def __init__(self, data):
        sizes, arrays = read_safetensors(data, "terrane.context", json.loads, INTEGERS)
        require(isinstance(sizes, dict) and sizes.keys() == self.SIZES.keys(), "other sizes of the model")
        for name, (least, most, in_fours) in self.SIZES.items():
            n = sizes[name]
            require(type(n) is int and least <= n <= most and not (in_fours and n % 4), f"{name} of the model")
        require(sizes["band"] or not sizes["band_blocks"], "blocks of bands without layers")
        has_blocks = sizes["dequantiser"] and sizes["band"]
        require(has_blocks or not sizes["dequantiser_blocks"], "blocks of a dequantiser that has none")
        self.sizes = sizes

        def array(name, kind, *shape):
            """An array that must be there with this type and shape."""
            require(name in arrays, f"the model has no {name}")
            require(arrays[name].dtype == kind, f"{name} has another type")
            require(arrays[name].shape == shape, f"{name} has another shape")
            return arrays[name].astype(np.int64)

        self.layers = {}
        for name, (inputs, outputs) in self.shapes():
            weight, bias = array(f"{name}.weight", "i1", outputs, inputs), array(f"{name}.bias", "<i4", outputs)
            require(np.all(127 * np.abs(weight).sum(1) + np.abs(bias) + 32 < 2**31), f"{name} has too large sums")
            self.layers[name] = weight.astype(np.float64), bias.astype(np.float64)[:, None]

        self.centres = array("tables.centre", "<i4", 4 * 38 * 13).tolist()
        self.radii = array("tables.radius", "u1", 4 * 38 * 13).tolist()
        require(max(self.radii) <= 14, "a table with too large a radius")
        ends = [*accumulate((2 * radius + 3 for radius in self.radii), initial=0)]
        frequencies = array("tables.size", "<u2", ends[-1]).tolist()
        require(min(frequencies) >= 1, "a frequency of 0")
        self.tables = []
        for a, b in zip(ends, ends[1:]):
            below, *values, above = frequencies[a:b]
            self.tables.append([*accumulate([below, above, *values], initial=0)])
        require(all(cumulative[-1] == 65536 for cumulative in self.tables), "a table with another sum")

    def shapes(self):
        """Name, inputs and outputs of all layers."""
        n = self.sizes
        trunk, band, hidden, last = n["trunk"], n["band"], n["hidden"], n["last"]
        yield "trunk.0", (17 + 9 * 20, trunk)
        yield from self.blocks_of("trunk", n["blocks"], trunk)
        for k in range(3 if band else 0):
            yield f"band.{k}.0", (9 * trunk + 9 * 4 * (k > 0), band)
            yield from self.blocks_of(f"band.{k}", n["band_blocks"], band)
        for k in range(3):
            for phase in range(4):
                seen = (9 if n["look"] else 1) * (band or trunk)
                seen += 4 * sum(len(taps) for _, taps in self.symbols_seen(k, phase))
                widths = [seen, hidden, last, 4] if last else [seen, hidden, 4]
                for i, shape in enumerate(zip(widths, widths[1:])):
                    yield f"head.{k}.{phase}.{i}", shape
        if d := n["dequantiser"]:
            yield "dequantiser.0", ((9 if band else 1) * trunk + 72, d)
            yield from self.blocks_of("dequantiser", n["dequantiser_blocks"], d)
            yield f"dequantiser.{1 + 2 * n['dequantiser_blocks']}", (d, 4)

    @staticmethod
    def blocks_of(name, blocks, channels):
        """Name, inputs and outputs of the layers of residual blocks."""
        return ((f"{name}.{1 + i}", (9 * channels, channels)) for i in range(2 * blocks))

    def symbols_seen(self, band, phase):
        """The sets of symbols that a head sees, each with its taps."""
        near, alone = taps(1), not self.sizes["band"]
        more = near if alone and band == 1 else []
        own = [tap for tap in taps(self.sizes["reach"]) if is_known(phase, *tap) or tap in more]
        return [(band // 2, own), (0, near)] if alone and band == 2 else [(band // 2, own)]

    def sums(self, name, sources):
        """The sums of a layer, [output, position], of sources [channel, …] one after another."""
        (weight, sums), first = self.layers[name], 0
        for source in sources:
            count = len(source)
            sums = sums + weight[:, first : first + count] @ source.reshape(count, -1)
            first += count
        return sums

    def activations(self, name, sources, before=0):
        """The activations of a layer; of a residual one, with the old ones."""
        return np.clip(before + np.floor((self.sums(name, sources) + 32) / 64), 0, 127)

    def convolve(self, grid, name, sources, before=None):
        """A map of the activations of a layer at all valid positions, of sources there."""
        values = self.activations(name, sources, 0 if before is None else grid.at(before).reshape(len(before), -1))
        result = grid.map(len(values))
        grid.at(result)[:] = values.reshape(-1, len(grid.rows), len(grid.columns))
        return result

    def residual_blocks(self, grid, name, channels, blocks):
        """A map after residual blocks."""
        for i in range(blocks):
            inner = self.convolve(grid, f"{name}.{1 + 2 * i}", grid.around(channels, taps(1)))
            channels = self.convolve(grid, f"{name}.{2 + 2 * i}", grid.around(inner, taps(1)), before=channels)
        return channels

    def trunk(self, grid, finer):
        """The trunk of a level."""
        constants = np.array(grid.part.constants(finer), np.float64)
        trunk = self.convolve(grid, "trunk.0", chain([constants], grid.around(grid.inputs(), taps(1))))
        return self.residual_blocks(grid, "trunk", trunk, self.sizes["blocks"])

    def features(self, grid, trunk, seen, band):
        """What the heads of a band see beside symbols."""
        if not self.sizes["band"]:
            return trunk
        sources = grid.around(trunk, taps(1))
        if band:
            sources = chain(sources, grid.around(seen[0], taps(1)))
        features = self.convolve(grid, f"band.{band}.0", sources)
        return self.residual_blocks(grid, f"band.{band}", features, self.sizes["band_blocks"])

    def band(self, coder, grid, trunk, seen, band, symbols):
        """Reads the symbols of a band, phase by phase, and adds them to those that are seen."""
        height, width = symbols.shape
        features = self.features(grid, trunk, seen, band)
        for phase, (y, x) in enumerate(PHASES):
            rows, columns = range(y, height, 2), range(x, width, 2)
            if not rows or not columns:
                continue
            sources = [grid.around(features, taps(self.sizes["look"]), rows, columns)]
            sources += [grid.around(seen[which], near, rows, columns) for which, near in self.symbols_seen(band, phase)]
            values = self.activations(f"head.{band}.{phase}.0", chain(*sources))
            if self.sizes["last"]:
                values = self.activations(f"head.{band}.{phase}.1", [values])
            m, s, t, _ = self.sums(f"head.{band}.{phase}.{1 + (self.sizes['last'] > 0)}", [values]).astype(np.int64)
            means = np.clip((m + 256) >> 9, -255, 255).tolist()
            scales = np.clip(20 + ((s + 128) >> 8), 0, 247).tolist()
            shapes = np.clip(2 + ((t + 512) >> 10), 0, 3).tolist()
            found = []
            for i in range(0, len(means), 64):
                found += self.group(coder, means[i : i + 64], scales[i : i + 64], shapes[i : i + 64])
            found = np.array(found, np.int64).reshape(len(rows), len(columns))
            symbols[y::2, x::2] = found
            first = 2 * (band % 2)
            grid.at(seen[band // 2], rows, columns)[first : first + 2] = parts(64 * found)

    LARGEST = (37, 36, 33, 31)  # the largest scale of each shape that has tables
    PARTS = (
        164, 184, 206, 232, 260, 292, 328, 368, 413, 463, 520, 584, 655,
        736, 826, 927, 1040, 1168, 1311, 1471, 1651, 1854, 2081, 2335, 2621, 2942,
        3303, 3707, 4161, 4671, 5243, 5885, 6606, 7415, 8323, 9342, 10486, 11770,
    )
    DIVISOR = (
        6394, 5699, 5090, 4520, 4033, 3591, 3197, 2849, 2539, 2265, 2016, 1796, 1601,
        1425, 1269, 1131, 1008, 898, 800, 713, 635, 566, 504, 449, 400, 356,
        317, 283, 252, 224, 200, 178, 159, 141, 126, 112, 100, 89,
    )

    def far(self, mean, row):
        """The mean that has a table, and a number of steps (F.3)."""
        if abs(mean) <= 12:
            return mean, 0
        a = mean * self.PARTS[row]
        steps = (a + 2**13) >> 14
        return min(max(((a - (steps << 14)) * self.DIVISOR[row] + 2**19) >> 20, -12), 12), steps

    def group(self, coder, means, scales, shapes):
        """The symbols of a group (F.3)."""
        lanes, places = len(coder.states), range(len(means))
        shifts = [-(-max(scale - self.LARGEST[shape], 0) // 6) for scale, shape in zip(scales, shapes)]
        rows = [scale - 6 * shift for scale, shift in zip(scales, shifts)]
        means, steps = zip(*(self.far(mean, row) for mean, row in zip(means, rows)))
        tables = [13 * (38 * shape + row) + abs(mean) for shape, row, mean in zip(shapes, rows, means)]
        entries = [coder.symbol(self.tables[tables[i]], i % lanes) for i in places]
        lows = [0] * len(means)
        for start in (0, 16, 32):
            for i in places:
                if shifts[i] > start:
                    lows[i] |= coder.raw(min(shifts[i] - start, 16), i % lanes) << start
        symbols = []
        for mean, step, shape, shift, row, table, entry, low in zip(means, steps, shapes, shifts, rows, tables, entries, lows):
            centre, radius = self.centres[table], self.radii[table]
            value = centre - radius + entry - 2
            if entry < 2:
                beyond = self.beyond(coder, max(row + 12 * (shape > 0) - 30, 0) // 6)
                value = centre + radius + 1 + beyond if entry else centre - radius - 1 - beyond
            if shift:
                value = (value << shift) + low - 2 ** (shift - 1)
            value = signed(-signed(value) if mean < 0 else value)
            symbols.append(min(max(signed(value + (step << shift)), -MAX_SYMBOL), MAX_SYMBOL))
        return symbols

    @staticmethod
    def beyond(coder, lowest):
        """How far a symbol lies beyond its table, of which so many lowest bits are stored as they are."""
        n = 0
        while n < 48 and coder.raw(1):
            n += 1
        k = 2**n + coder.raw(n) - 1
        return k << lowest | coder.raw(lowest)

    def offsets(self, grid, trunk, seen):
        """What is added to 64 times each symbol, for the three bands at all positions of the part (F.6)."""
        blocks, part = self.sizes["dequantiser_blocks"], grid.part
        sources = [grid.around(trunk, taps(1 if self.sizes["band"] else 0)), *(grid.around(s, taps(1)) for s in seen)]
        channels = self.convolve(grid, "dequantiser.0", chain(*sources))
        channels = self.residual_blocks(grid, "dequantiser", channels, blocks)
        own = grid.at(channels, range(part.height), range(part.width))
        sums = self.sums(f"dequantiser.{1 + 2 * blocks}", [own]).astype(np.int64)[:3]
        return np.clip((sums + 16) >> 5, -32, 32).reshape(3, part.height, part.width)

    def level_below(self, coder, part, width, height, finer):
        """The picture of a window, one level below a part of another picture."""
        shapes = (-(-height // 2), width // 2), (height // 2, -(-width // 2)), (height // 2, width // 2)
        bands, grid, trunk = [np.zeros(shape, np.int64) for shape in shapes], Grid(part), None
        seen = [grid.map(4), grid.map(4)]
        for band, symbols in enumerate(bands):
            if symbols.size and not coder.raw(1):
                trunk = self.trunk(grid, finer) if trunk is None else trunk
                self.band(coder, grid, trunk, seen, band, symbols)
        offsets = None
        if trunk is not None and self.sizes["dequantiser"] and not part.picture.lossless:
            offsets = self.offsets(grid, trunk, seen)
        return picture_below(part, bands, offsets)

    def whole(self, data, width, height, depth, lossless):
        """The picture of a root from its stream (F.2)."""
        coder, sizes = EntropyDecoder.of_picture(data), []
        while max(width, height) > 8:
            sizes.append((width, height))
            width, height = -(-width // 2), -(-height // 2)
        ll = read_integers(coder, width, height, True)
        require((ll >= -MAX_SYMBOL).all() and (ll <= MAX_SYMBOL).all(), "an LL band out of range")
        image = ll if lossless else 64 * ll
        picture = Picture(image, image, None, lossless)
        for level in range(len(sizes) - 1, -1, -1):
            below, (width, height) = Part(picture, 0, 0, width, height), sizes[level]
            picture = self.level_below(coder, below, width, height, level + depth)
        coder.end()
        return picture

    def details(self, data, part, width, height, depth):
        """The picture of a tile below a part of another picture from its stream (F.2)."""
        coder = EntropyDecoder.of_picture(data)
        picture = self.level_below(coder, part, width, height, depth)
        coder.end()
        return picture


def picture_below(part, bands, offsets=None):
    """The picture of one level below a part, of its symbols and of what the dequantiser adds to these."""
    lossless = part.picture.lossless
    rounded = bands if lossless else [64 * symbols for symbols in bands]
    context = decoded = inverse_transform(part.of(part.picture.context), rounded, lossless)
    if not lossless:
        if offsets is not None:
            rounded = [band + more[: len(band), : band.shape[1]] for band, more in zip(rounded, offsets)]
        decoded = inverse_transform(part.of(part.picture.decoded), rounded, lossless)
    return Picture(context, decoded, bands, lossless)


def without_details(part, width, height):
    """The picture of a tile below a part of another picture, all symbols of which are 0."""
    shapes = (-(-height // 2), width // 2), (height // 2, -(-width // 2)), (height // 2, width // 2)
    return picture_below(part, [np.zeros(shape, np.int64) for shape in shapes])


# Section 10.5: flat areas


def label_areas(mask):
    """The number of the area of each pixel, from 1 on in the order of first pixels, and how many there are."""
    labels, count = np.zeros(np.add(mask.shape, 2), np.int64), 0
    waiting = np.pad(mask, 1)
    for first in np.argwhere(waiting).tolist():
        if not waiting[*first]:
            continue
        count += 1
        found = [first]
        waiting[*first] = False
        while found:
            y, x = found.pop()
            labels[y, x] = count
            for j, i in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                if waiting[j, i]:
                    waiting[j, i] = False
                    found.append((j, i))
    return labels[1:-1, 1:-1], count


MAX_FLAT_LAYERS = 6


class FlatAreas:
    """Connected pixels that have one height, in layers of areas that do not touch."""

    def __init__(self, data, width, height):
        cursor = Cursor(data)
        self.layers = []
        while not self.layers or cursor.left():
            require(len(self.layers) < MAX_FLAT_LAYERS, "too many layers of flat areas")
            labels, count = label_areas(decode_mask(cursor.block(), width, height))
            require(count, "a layer without a flat area")
            heights = np.array(cursor.numbers(f"{count}d"))
            require(np.isfinite(heights).all(), "a height of a flat area that is not finite")
            self.layers.append((labels, heights))

    def flatten(self, heights):
        """Gives each pixel of an area the height of it."""
        for labels, of_areas in self.layers:
            flat = labels > 0
            heights[flat] = of_areas[labels[flat] - 1]


# Sections 9, 10 and 13: pages, records and heights


def read_page(data, trees):
    """Offset and length of each record, by the number of its tile, of an index page and the tiles of its trees."""
    cursor, end, records = Cursor(data), 0, {}
    for tiles in trees:
        left = cursor.varint()
        if not left:
            continue
        offset = (end + cursor.zigzag()) % 2**64
        end = offset + left
        require(end < 2**64, "a tree beyond 2^64")
        lengths = [cursor.varint() for _ in tiles[:-1]]
        require(sum(lengths) <= left, "records longer than their tree")
        for tile, length in zip(tiles, [*lengths, left - sum(lengths)], strict=True):
            require(length <= MAX_RECORD, "bytes of a record", LimitExceeded)
            if length:
                records[tile] = offset, length
            offset += length
    cursor.end()
    return records


class Record:
    """The parts of a record after its checksum; None for those that it does not have."""

    def __init__(self, data):
        cursor = Cursor(data)
        flags = cursor.number("B")
        require(not flags & 0xC0, "reserved bits of a record", Unsupported)
        require(flags & 0x28 != 0x28, "a residual and corrections together", Unsupported)
        self.kind = flags & 3
        self.mask = cursor.block() if flags & 4 else None
        self.flats = cursor.block() if flags & 16 else None
        self.layer = Cursor(cursor.block() if flags & 0x28 else cursor.rest())
        self.residual = Cursor(cursor.rest()) if flags & 8 else None
        self.corrections = cursor.rest() if flags & 32 else None


class IntegerTile:
    """A tile of integers; all arrays are [height, width]."""

    has_picture = False

    def __init__(self, record, place, missing, bound):
        self.place, self.missing, self.remains = place, missing, []
        origin, step = record.layer.numbers("dd")
        require(math.isfinite(origin), "an origin that is not finite")
        require(step in (0, -1) or step > 0 and math.isfinite(step), "step of the integers")
        self.symbols = decode_integers(record.layer.rest(), place.width, place.height, True, missing)
        heights = self.metres(origin, step)
        if record.flats is not None:
            FlatAreas(record.flats, place.width, place.height).flatten(heights)
        if bound == 3:
            heights = heights.astype(np.float32).astype(np.float64)
        require(np.isfinite(heights[~missing]).all(), "a height that is not finite")
        self.heights = np.where(missing, np.nan, heights)

    def metres(self, origin, step):
        """Heights of the integers (section 13.2)."""
        if step > 0:
            return origin + self.symbols.astype(np.float64) * step
        if step == 0:
            v = np.where(self.missing, 0, self.symbols)
            require((v >= -(2**31)).all() and (v < 2**31).all(), "an integer beyond the bits of an f32")
            bits = np.where(v >= 0, v, ~v | 2**31)
            return bits.astype(np.uint32).view(np.float32).astype(np.float64)
        return np.where(self.symbols >= 0, self.symbols, ~self.symbols | np.int64(-(2**63))).view(np.float64)


class TokenTile:
    """A tile of tokens; symbols are [count, channels], all other arrays [height, width]."""

    has_picture = False

    def __init__(self, record, place, missing, model):
        self.place, self.missing, self.remains = place, missing, []
        coding, bits, low, span = record.layer.numbers("BBff")
        require(coding <= 2, f"coding {coding}", Unsupported)
        require(bits in (2, 4, 8, 16), "bits of a symbol")
        steps = np.array(record.layer.numbers(f"{model.channels}e"), np.float32)
        require(np.isfinite([low, span, *steps]).all(), "low, range or a step that is not finite")
        self.symbols = decode_symbols(record.layer.rest(), coding, bits, model)
        values = model.values(self.symbols.astype(np.float32) * steps)
        heights = low + span * values[: place.height, : place.width]
        if record.residual:
            step = record.residual.number("d")
            require(step > 0 and math.isfinite(step), "step of the residual")
            residual = decode_integers(record.residual.rest(), place.width, place.height, False, missing)
            heights = heights + residual.astype(np.float64) * step
            self.remains = [residual]
        if record.flats is not None:
            FlatAreas(record.flats, place.width, place.height).flatten(heights)
        require(np.isfinite(heights[~missing]).all(), "a height that is not finite")
        self.heights = np.where(missing, np.nan, heights)


def growth_of_ll():
    """By how much the LL band of a level of the 9/7 is larger than its image (section 13.6)."""
    odd = 1 + 2 * (-103949 / 65536)
    even = 1 + 2 * (-3472 / 65536) * odd
    odd = odd + 2 * (57862 / 65536) * even
    even = even + 2 * (29066 / 65536) * odd
    return even * even * 65536 / 49589


GROWTH = growth_of_ll()
LIFTING = (-103949, -3472, 57862, 29066)  # of the forward transform (section 13.7)


def low(line, lossless):
    """Where the samples of a line's low half lie, from where those of the line do (section 13.7)."""
    if len(line) == 1:
        return line
    halves = []
    for numbers in (line, np.ones(len(line))):
        even, odd = numbers[::2].copy(), numbers[1::2].copy()
        for step, factor in enumerate((-1 / 2, 1 / 4) if lossless else (c / 65536 for c in LIFTING)):
            if step % 2 == 0:
                after = np.append(even[1:], even[-1])[: len(odd)]
                odd += factor * (even[: len(odd)] + after)
            else:
                before, here = np.insert(odd, 0, odd[0]), np.append(odd, odd[-1])
                even += factor * (before[: len(even)] + here[: len(even)])
        halves.append(even)
    return halves[0] / halves[1]


def positions(depth, tile, count, side, lossless):
    """Where the columns of a tile's picture lie, of a storey whose finest level has so many."""
    if depth == 0:
        return np.arange(tile * side, min((tile + 1) * side, count), dtype=np.float64)
    tiles = -(-(-(-count // 2 ** (depth - 1))) // side)
    below = range(2 * tile, min(2 * tile + 2, tiles))
    return np.concatenate([low(positions(depth - 1, b, count, side, lossless), lossless) for b in below])


@dataclass
class Axis:
    """Where the columns or rows of an overview lie, with a border of two on each side."""

    at: np.ndarray
    before: bool  # whether the tree goes on there
    after: bool

    @property
    def known(self):
        """The indices of the picture and of what the tile above says of its border."""
        return slice(0 if self.before else 2, len(self.at) - (0 if self.after else 2))


def bordered_positions(inner, depth, before, after, above, start):
    """Positions with a border, by whole pixels where the tree ends, elsewhere from those of the tile above with its border."""
    step = 2.0**depth
    at = np.concatenate([inner[0] + step * np.array([-2, -1]), inner, inner[-1] + step * np.array([1, 2])])
    axis = Axis(at, before, after)
    for x in [-2, -1] * axis.before + [len(inner), len(inner) + 1] * axis.after:
        left = 2 + start + x // 2
        at[2 + x] = (above.at[left] + above.at[left + x % 2]) / 2
    return axis


def go_on_straight(lines, axis):
    """Lines whose border goes on straight where the tree ends, along their first dimension."""
    at, first, last = axis.at, axis.known.start, axis.known.stop - 1
    for here, there, border in (first, min(first + 1, last), range(first)), (last, max(last - 1, first), range(last + 1, len(at))):
        for x in border:
            slope = (lines[there] - lines[here]) / (at[there] - at[here]) if here != there else 0
            lines[x] = lines[here] + (at[x] - at[here]) * slope


def with_border(metres, axes, above=None, above_axes=None, starts=None):
    """Metres with a border of two pixels: as the tile above says, and straight where the tree ends."""
    columns, rows = axes
    bordered = np.zeros((len(rows.at), len(columns.at)))
    if above is not None:
        places = []
        for axis, outer, start in zip(axes, above_axes, starts):
            left = 2 + start + np.arange(-2, len(axis.at) - 2)[axis.known] // 2
            places.append((left, (axis.at[axis.known] - outer.at[left]) / (outer.at[left + 1] - outer.at[left])))
        (left, across), (up, down) = places
        upper, lower = (above[r][:, left] + across * (above[r][:, left + 1] - above[r][:, left]) for r in (up, up + 1))
        bordered[rows.known, columns.known] = upper + down[:, None] * (lower - upper)
    bordered[2:-2, 2:-2] = metres
    go_on_straight(bordered[rows.known].T, columns)
    go_on_straight(bordered, rows)
    return bordered


def kernel(depth, lossless):
    """Weights of the four samples around the middle of an overview's pixel."""
    t = 0.5 - 0.5 ** (depth + 1)
    smooth = np.array(
        [
            -t / 2 + t**2 / 2 + 3 * t**3 / 2 - 5 * t**4 / 2 + t**5,
            1 - t**2 - 9 * t**3 / 2 + 15 * t**4 / 2 - 3 * t**5,
            t / 2 + t**2 / 2 + 9 * t**3 / 2 - 15 * t**4 / 2 + 3 * t**5,
            -3 * t**3 / 2 + 5 * t**4 / 2 - t**5,
        ]
    )
    spline = np.array([(1 - t) ** 3, 3 * t**3 - 6 * t**2 + 4, -3 * t**3 + 3 * t**2 + 3 * t + 1, t**3]) / 6
    return (smooth + spline) / 2 if lossless else smooth


def moved(bordered, axes, firsts, counts, depth, lossless):
    """Heights at the middle of what the pixels of an overview cover, of metres with a border."""
    weights = kernel(depth, lossless)
    for axis, start, count in zip(axes, firsts, counts):
        size = bordered.shape[1] - 4
        first = 2**depth * (start + np.arange(size))
        middle = (first + np.minimum(first + 2**depth, count) - 1) / 2
        lies = sum(k * axis.at[i + 1 : i + 1 + size] for i, k in enumerate(weights))
        miss = (middle - lies) / (axis.at[3 : 3 + size] - axis.at[2 : 2 + size])
        difference = bordered[:, 3 : 3 + size] - bordered[:, 2 : 2 + size]
        bordered = (sum(k * bordered[:, i + 1 : i + 1 + size] for i, k in enumerate(weights)) + miss * difference).T
    return bordered


@dataclass
class Wavelet:
    """What the numbers of a tree of wavelets mean."""

    lossless: bool
    step: float
    offset: int

    @staticmethod
    def read(layer):
        """The start of the layer of a root."""
        transform = layer.number("B")
        require(transform <= 1, f"transform {transform}", Unsupported)
        step, offset = layer.number("fd"[transform]), layer.zigzag()
        require(step > 0 and math.isfinite(step), "step of the wavelet layer")
        return Wavelet(bool(transform), step, offset)

    def metres(self, integers, depth, coarser):
        """The metres of a picture (section 13.6)."""
        unit, growth = (1, 1) if self.lossless else (64, GROWTH)
        if depth == 0 and coarser == 0:
            return (integers + signed(unit * self.offset)).astype(np.float64) * (self.step / unit)
        factor = self.step * (1 + coarser / 16) / (unit * growth**depth)
        return integers.astype(np.float64) * factor + float(self.offset) * self.step


class WaveletTile:
    """A tile with a picture. Its stream is decoded when the picture is asked for; without one it has no details."""

    has_picture = True

    def __init__(self, terrain, place, above, missing, record):
        self.terrain, self.place, self.above, self.missing = terrain, place, above, missing
        self.coarser, self.stream, self.areas, self.corrections, self.remains = 0, None, None, None, []
        self.wavelet = above.wavelet if above else Wavelet.read(record.layer)
        if record is None:
            return
        if record.kind == 3:
            self.coarser = record.layer.varint()
            require(self.coarser <= MAX_COARSER, "`coarser` out of range")
            require(not self.coarser or self.may_be_lossy(), "`coarser` where it must be 0")
        self.stream = record.layer.rest()
        if record.flats is not None:
            self.areas = FlatAreas(record.flats, place.width, place.height)
        if record.corrections is not None:
            require(self.may_be_lossy(), "corrections where they cannot be")
            self.corrections = Corrections(record.corrections, missing)
            self.remains = [self.corrections.coarse, self.corrections.fine, self.corrections.pixels]

    def may_be_lossy(self):
        """Whether the tile may have corrections and a step of its own."""
        return self.place.depth == 0 and not self.wavelet.lossless

    @cached_property
    def picture(self):
        """The picture (F.2)."""
        width, height, depth = self.place.width, self.place.height, self.place.depth
        if not self.above:
            return self.terrain.model.whole(self.stream, width, height, depth, self.wavelet.lossless)
        above = self.above.picture.coarser(self.coarser) if self.coarser else self.above.picture
        part = Part(above, self.place.x0, self.place.y0, -(-width // 2), -(-height // 2))
        if self.stream is None:
            return without_details(part, width, height)
        return self.terrain.model.details(self.stream, part, width, height, depth)

    @property
    def symbols(self):
        """The integers U of appendix F."""
        return self.picture.decoded

    @cached_property
    def bordered(self):
        """The metres of an overview with their border (section 13.7)."""
        metres = self.wavelet.metres(self.symbols, self.place.depth, 0)
        if not self.above:
            return with_border(metres, self.axes)
        starts = (self.place.x0, self.place.y0)
        return with_border(metres, self.axes, self.above.bordered, self.above.axes, starts)

    @cached_property
    def axes(self):
        """Where the columns and the rows of an overview lie, with their borders (section 13.7)."""
        pyramid, place = self.terrain.head.pyramid, self.place
        level, finest = pyramid.levels[place.level], pyramid.levels[place.level - place.depth]
        n = 2 ** (level.root - place.level)
        axes = []
        for axis, (tile, tiles, count, start) in enumerate(
            ((place.column, level.columns, finest.width, place.x0), (place.row, level.rows, finest.height, place.y0))
        ):
            inner = positions(place.depth, tile, count, pyramid.side, self.wavelet.lossless)
            before, after = tile % n > 0, (tile + 1) % n > 0 and tile + 1 < tiles
            above = self.above.axes[axis] if self.above else None
            axes.append(bordered_positions(inner, place.depth, before, after, above, start))
        return axes

    @cached_property
    def heights(self):
        """Heights, NaN at missing pixels."""
        if self.place.depth:
            place, pyramid = self.place, self.terrain.head.pyramid
            firsts = place.column * pyramid.side, place.row * pyramid.side
            finest = pyramid.levels[place.level - place.depth]
            counts = finest.width, finest.height
            shown = moved(self.bordered, self.axes, firsts, counts, place.depth, self.wavelet.lossless)
            return np.where(self.missing, np.nan, shown)
        heights = self.wavelet.metres(self.symbols, 0, self.coarser)
        if self.corrections:
            heights = heights + self.corrections.metres()
        if self.areas:
            self.areas.flatten(heights)
        if self.wavelet.lossless and self.terrain.head.bound == 3:
            heights = heights.astype(np.float32).astype(np.float64)
        return np.where(self.missing, np.nan, heights)


class Terrain:
    """A terrane file, from its bytes, and those of its model where it is not embedded."""

    def __init__(self, data, model=None):
        self.data, self.given = data, model
        self.head = Head(data)
        self.pages, self.overviews = {}, {}

    def part(self, offset, length):
        """The bytes of a part after the head."""
        require(offset >= self.head.size and offset + length <= len(self.data), "outside the file")
        return self.data[offset : offset + length]

    def page(self, index):
        """Offset and length of each record that a page lists, by the number of its tile."""
        if index not in self.pages:
            head, page = self.head, self.head.root[index]
            data = self.part(page.offset, page.length)
            require(crc32c(data) == page.checksum, "wrong checksum of a page")
            trees = range(index * head.trees_per_page, min((index + 1) * head.trees_per_page, head.trees))
            require(len(data) >= len(trees), "a page with fewer bytes than trees")
            self.pages[index] = read_page(data, map(head.pyramid.tree, trees))
        return self.pages[index]

    def checked_record(self, number, offset, length):
        """The bytes of a record after its checksum."""
        cursor = Cursor(self.part(offset, length))
        checksum, rest = cursor.number("I"), cursor.rest()
        require(crc32c(number.to_bytes(8, "little") + rest) == checksum, "wrong checksum of a record")
        return rest

    def record(self, place):
        """The record of a tile; None where it has none."""
        entry = self.page(place.tree // self.head.trees_per_page).get(place.number)
        return Record(self.checked_record(place.number, *entry)) if entry else None

    def embedded_model(self):
        """The checked bytes of the embedded model; None where there is none."""
        if not self.head.model or not self.head.model.embedded:
            return None
        offset, length, checksum = self.head.model.embedded
        data = self.part(offset, length)
        require(crc32c(data) == checksum, "wrong checksum of the model")
        return data

    def has_model(self):
        """Whether the model is there, embedded or given."""
        return bool(self.given or self.head.model and self.head.model.embedded)

    @cached_property
    def model(self):
        """The model, embedded or given."""
        require(self.head.method, "tokens in a file without a model")
        data = self.embedded_model()
        data = self.given if data is None else data
        if data is None:
            raise NoModel(f"{self.head.model.name}, SHA-256 {self.head.model.sha256.hex()}")
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
        if self.embedded_model() is not None:
            parts.append(self.head.model.embedded[:2])
        for index in range(len(self.head.root)):
            for number, entry in self.page(index).items():
                self.checked_record(number, *entry)
                parts.append(entry)
        end = self.head.size
        for offset, length in sorted(parts):
            require(offset == end, "a gap or an overlap of parts")
            end += length
        require(end == len(self.data), "a gap at the end of the file")

    def tile(self, level, column, row):
        """A tile; None without data. Overviews are kept, for the tiles below them."""
        place = self.head.pyramid.place(level, column, row)
        if place.number not in self.overviews:
            tile = self.read_tile(place)
            if not level:
                return tile
            self.overviews[place.number] = tile
        return self.overviews[place.number]

    def read_tile(self, place):
        """A tile from its record, or without one (section 9)."""
        above = None
        if self.head.method == 5 and not place.is_root:
            above = self.tile(place.level + 1, place.column // 2, place.row // 2)
            if above is None:
                return None
            if above.has_picture and self.has_model():
                above.picture  # a fault in it concerns the tiles below too, also those that do not need it
        record = self.record(place)
        if record is None and not (above and above.has_picture):
            return None
        missing = self.missing(record and record.mask, place, above)
        if record is None:
            return None if missing.all() else WaveletTile(self, place, above, missing, None)
        self.check_kind(record, place, above)
        if record.kind == 0:
            return IntegerTile(record, place, missing, self.head.bound)
        if record.kind == 1:
            return TokenTile(record, place, missing, self.model)
        return WaveletTile(self, place, above, missing, record)

    def missing(self, mask, place, above):
        """The missing pixels of a tile, given its coded mask, if any, and the tile above, if any."""
        known = inherited(above.missing, place.x0, place.y0, place.width, place.height) if above else None
        if mask is not None:
            return decode_mask(mask, place.width, place.height, known)
        return np.zeros((place.height, place.width), bool) if known is None else known

    def check_kind(self, record, place, above):
        """Refuses what a record cannot have where it is (section 10)."""
        kind, method = record.kind, self.head.method
        require(kind != 1 or method != 5, "tokens in a file of wavelet layers")
        require(kind < 2 or method == 5, "a wavelet layer in a file of another method")
        require(kind != 2 or not above, "a whole picture below another tile")
        require(kind != 3 or above and above.has_picture, "details that are not below a picture")
        require(kind == 1 or record.residual is None, "a residual without tokens")
        require(kind >= 2 or record.corrections is None, "corrections without a picture")
        require(place.depth == 0 or record.flats is None, "flat areas on an overview")

    def tiles(self, level):
        """Row, column and tile of all tiles of a level, in the order of their numbers."""
        grid = self.head.levels[level]
        for row in range(grid.rows):
            for column in range(grid.columns):
                yield row, column, self.tile(level, column, row)

    def heights(self, level):
        """The heights of a level, NaN where there is no data."""
        grid, side = self.head.levels[level], self.head.side
        heights = np.full((grid.height, grid.width), np.nan)
        for row, column, tile in self.tiles(level):
            if tile:
                heights[row * side : (row + 1) * side, column * side : (column + 1) * side] = tile.heights
        return heights
