"""Makes a matrix of small GeoTIFFs with GDAL, and records what GDAL reads from each.

    python make.py                                            # the committed set
    python make.py --out /tmp/x --size 900 700 --block 256    # a full-size set

Written into the output folder:

    *.tif               one file per flavour; the name says what it is
    manifest.json       a list with one object per file, sorted by file name
    expected/*.f64      the heights as little-endian f64, row by row, NaN where missing;
                        named after their content, so equal arrays are stored once

In the manifest, `refused` files must be refused, and `may_refuse` files either refused or
read as expected; `why` says why. `expected_overview1` belongs to the first overview.
`expected` follows GDAL's own mask. The transform is in GDAL's order.

Needs numpy and rasterio (the committed set: rasterio 1.4.4 with GDAL 3.10.3).
"""

import argparse
import hashlib
import json
import re
import struct
import tempfile
import warnings
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import rasterio
import rasterio.shutil
from rasterio.enums import MaskFlags, Resampling
from rasterio.errors import NotGeoreferencedWarning
from rasterio.transform import Affine
from rasterio.windows import Window

F32_MIN = float(np.finfo("f4").min)
SWISS = Affine(10, 0, 2_600_000, 0, -10, 1_200_000)
# Oblong pixels, so that swapping the two rotation terms shows.
ROTATED = (
    Affine.translation(2_600_000, 1_200_000) * Affine.rotation(12.5) * Affine.scale(7.5, -12.25)
)

CUSTOM_WKT = (
    'PROJCS["Valley survey grid",GEOGCS["Valley datum",DATUM["Valley_datum",'
    'SPHEROID["Valley ellipsoid",6377999.5,298.7]],'
    'PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]],'
    'PROJECTION["Transverse_Mercator"],'
    'PARAMETER["latitude_of_origin",46.7],PARAMETER["central_meridian",8.3],'
    'PARAMETER["scale_factor",0.99987],PARAMETER["false_easting",123456],'
    'PARAMETER["false_northing",-54321],UNIT["metre",1]]'
)


@dataclass
class Flavour:
    name: str
    data: np.ndarray  # what is written: rows x columns, or bands x rows x columns
    missing: np.ndarray  # where the heights must come back missing
    options: dict = field(default_factory=dict)  # GDAL creation options
    nodata: float | None = None
    crs: str | None = "EPSG:2056"
    transform: Affine | None = SWISS
    point: bool = False
    scale: float = 1.0
    offset: float = 0.0
    unit: str | None = None
    mask: np.ndarray | None = None  # internal mask, True is valid
    raw_mask: bool = False  # store the mask uncompressed
    left_out: list = field(default_factory=list)  # windows never written: sparse blocks
    overviews: list = field(default_factory=list)  # factors, appended after the image
    cog: dict | None = None  # creation options of the COG driver
    colormap: dict | None = None
    tolerance: float = 0.0  # how far GDAL's reading may lie from what was written
    refused: bool = False
    may_refuse: bool = False
    why: str | None = None
    union: np.ndarray | None = None  # missing, were nodata to count beside the mask


# ---------------------------------------------------------------- terrain


def terrain(width, height):
    """Heights between 1800 and 1950 m as f64, and a patch of about a tenth of them."""
    # RandomState, because numpy promises never to change its stream.
    noise = np.random.RandomState(7).standard_normal((height, width))
    v, u = np.mgrid[0:height, 0:width].astype("f8")
    u /= width
    v /= height
    z = 1875 + 48 * np.sin(5 * u + 1) * np.cos(4 * v) + 15 * np.sin(13 * u * v + 2) + 0.3 * noise
    assert 1800 < z.min() and z.max() < 1950
    patch = ((u - 0.62) / 0.2) ** 2 + ((v - 0.45) / 0.16) ** 2 < 1
    # Lone pixels and a corner, which a reader working in spans could miss.
    patch[0, 0] = patch[height - 1, width - 1] = patch[height // 5, width // 7] = True
    return z, patch


# ---------------------------------------------------------------- flavours


def flavours(width, height, block):
    z, patch = terrain(width, height)
    nowhere = np.zeros_like(patch)
    tile = dict(tiled=True, blockxsize=block, blockysize=block)
    strip = dict(blockysize=block // 2)
    layouts = {"strip": strip, "tile": tile}
    whole = np.round(z)
    out = []

    def add(name, data, missing, **kw):
        out.append(Flavour(name, data, missing, **kw))

    def holed(dtype, nodata, heights=z, holes=patch):
        data = heights.astype(dtype)
        data[holes] = nodata
        return data

    f32 = holed("f4", -9999)
    i16 = holed("i2", -9999, whole)
    full = z.astype("f4")
    deflate2 = dict(compress="deflate", predictor=2, **tile)

    # Codecs, layouts, predictors.
    for layout, blocks in layouts.items():
        for codec in "none packbits lerc lerc_deflate lerc_zstd".split():
            add(f"{codec}_{layout}_f32", f32, patch, nodata=-9999,
                options=dict(compress=codec, **blocks))
        for codec in "deflate lzw zstd".split():
            for predictor in 1, 2, 3:
                add(f"{codec}_{layout}_f32_pred{predictor}", f32, patch, nodata=-9999,
                    options=dict(compress=codec, predictor=predictor, **blocks))
            for predictor in 1, 2:
                add(f"{codec}_{layout}_i16_pred{predictor}", i16, patch, nodata=-9999,
                    options=dict(compress=codec, predictor=predictor, **blocks))
        add(f"lzma_{layout}_f32", f32, patch, nodata=-9999,
            options=dict(compress="lzma", **blocks),
            refused=True, why="LZMA compression is not supported")
        add(f"none_{layout}_i16", i16, patch, nodata=-9999, options=blocks)
    add("packbits_tile_i16", i16, patch, nodata=-9999, options=dict(compress="packbits", **tile))
    add("lerc_tile_i16", i16, patch, nodata=-9999, options=dict(compress="lerc", **tile))
    add("lerc_tile_f32_nan", holed("f4", np.nan), patch, nodata=np.nan,
        options=dict(compress="lerc", **tile))
    # The LERC files above have MAX_Z_ERROR=0, GDAL's default.
    add("lerc_tile_f32_maxz0.05", f32, patch, nodata=-9999, tolerance=0.05,
        options=dict(compress="lerc", max_z_error=0.05, **tile))
    add("lerc_zstd_strip_f32_nan_maxz0.05", holed("f4", np.nan), patch, nodata=np.nan,
        tolerance=0.05, options=dict(compress="lerc_zstd", max_z_error=0.05, **strip))

    # Containers.
    add("bigtiff_none_strip_f32", f32, patch, nodata=-9999, options=dict(bigtiff="yes", **strip))
    add("bigtiff_deflate_tile_f32_pred3", f32, patch, nodata=-9999,
        options=dict(bigtiff="yes", compress="deflate", predictor=3, **tile))
    big = dict(endianness="big")
    add("bigendian_none_strip_f32", f32, patch, nodata=-9999, options=big | strip)
    add("bigendian_deflate_tile_f32_pred3", f32, patch, nodata=-9999,
        options=big | tile | dict(compress="deflate", predictor=3))
    add("bigendian_deflate_tile_f32_pred2", f32, patch, nodata=-9999,
        options=big | tile | dict(compress="deflate", predictor=2))
    add("bigendian_deflate_tile_i16_pred2", i16, patch, nodata=-9999, options=big | deflate2)
    # Integers only: libtiff swaps the bytes before LERC encodes them, and floats whose
    # swapped bytes spell a NaN are lost on the way.
    add("bigendian_lerc_tile_i16", i16, patch, nodata=-9999, may_refuse=True,
        options=big | tile | dict(compress="lerc"),
        why="the LERC block holds the samples with their bytes swapped")
    add("bigendian_bigtiff_lzw_strip_i16_pred2", i16, patch, nodata=-9999,
        options=big | strip | dict(bigtiff="yes", compress="lzw", predictor=2))

    # Sample types. The values are scaled to reach the top bytes and the sign bit.
    u8 = holed("u1", 255, whole - 1800)
    u16 = holed("u2", 65535, np.round(z * 20))
    i32 = holed("i4", -9999, np.round(z * 1000))
    f64 = holed("f8", -9999)
    for name, data, nodata in (
        ("u8", u8, 255), ("u16", u16, 65535), ("i32", i32, -9999), ("f64", f64, -9999)
    ):
        add(f"dtype_{name}_none_strip", data, patch, nodata=nodata, options=strip)
        add(f"dtype_{name}_deflate_tile_pred2", data, patch, nodata=nodata, options=deflate2)
    add("dtype_f64_deflate_tile_pred3", f64, patch, nodata=-9999,
        options=dict(compress="deflate", predictor=3, **tile))
    add("dtype_f64_lerc_tile", f64, patch, nodata=-9999, options=dict(compress="lerc", **tile))
    add("dtype_u16_nbits12_strip", holed("u2", 4095, whole), patch, nodata=4095,
        options=dict(nbits=12, **strip))
    # Half floats near -9999 are 8 apart, so that value itself would be lost; near these
    # heights they are 1 apart, and GDAL cuts off rather than rounds.
    add("dtype_f32_nbits16_strip", holed("f4", -10000), patch, nodata=-10000, tolerance=1.0,
        options=dict(nbits=16, **strip), may_refuse=True, why="half-precision samples")

    # Coordinate reference systems.
    degree = 0.0001
    for name, crs, transform in (
        ("epsg2056", "EPSG:2056", SWISS),
        ("epsg4326", "EPSG:4326", Affine(degree, 0, 7.4, 0, -degree, 46.9)),
        ("epsg32632", "EPSG:32632", Affine(10, 0, 400_000, 0, -10, 5_200_000)),
        ("epsg2056_5728", "EPSG:2056+5728", SWISS),
        ("epsg4647", "EPSG:4647", Affine(10, 0, 32_400_000, 0, -10, 5_700_000)),
        ("epsg7844", "EPSG:7844", Affine(degree, 0, 148.2, 0, -degree, -36.4)),
        ("custom_tmerc", CUSTOM_WKT, Affine(10, 0, 123_000, 0, -10, -54_000)),
        ("none", None, SWISS),
        ("none_no_transform", None, None),
    ):
        add(f"crs_{name}", i16, patch, nodata=-9999, options=deflate2, crs=crs,
            transform=transform)

    # Transforms.
    add("transform_rotated", i16, patch, nodata=-9999, options=deflate2,
        transform=ROTATED)
    add("transform_south_up", i16, patch, nodata=-9999, options=deflate2,
        transform=Affine(10, 0, 2_600_000, 0, 10, 1_199_000))
    add("transform_oblong_pixels", i16, patch, nodata=-9999, options=deflate2,
        transform=Affine(7.5, 0, 2_600_000, 0, -12.25, 1_200_000))
    add("transform_pixel_is_point", i16, patch, nodata=-9999, options=deflate2, point=True)
    add("transform_pixel_is_point_rotated", i16, patch, nodata=-9999, options=deflate2,
        point=True, transform=ROTATED)

    # Missing values.
    nan = holed("f4", np.nan)
    deflate3 = dict(compress="deflate", predictor=3, **tile)
    add("nodata_nan", nan, patch, nodata=np.nan, options=deflate3)
    add("nodata_f32min", holed("f4", F32_MIN), patch, nodata=F32_MIN, options=deflate3)
    add("nodata_none", full, nowhere, options=deflate3)
    add("nodata_none_nan_pixels", nan, patch, options=deflate3)
    both = f32.copy()
    both[patch & (np.arange(width) % 2 == 0)] = np.nan
    add("nodata_-9999_and_nan_pixels", both, patch, nodata=-9999, options=deflate3)

    # Internal masks.
    zeroed = holed("f4", 0)
    for layout, blocks in layouts.items():
        add(f"mask_none_{layout}_f32", zeroed, patch, mask=~patch, options=blocks)
        add(f"mask_none_{layout}_f32_mask_uncompressed", zeroed, patch, mask=~patch,
            options=blocks, raw_mask=True)
        add(f"mask_deflate_{layout}_f32_pred3", zeroed, patch, mask=~patch,
            options=dict(compress="deflate", predictor=3, **blocks))
    half = patch & (np.arange(width) < 0.62 * width)
    add("mask_over_nodata", f32, half, nodata=-9999, mask=~half, options=deflate3, union=patch,
        why="GDAL lets the mask decide alone; expected_union counts nodata pixels missing too")

    # Scale, offset, units.
    tenths = holed("i2", -9999, np.round((z - 100) * 10))
    for unit in "m", "ft":
        add(f"scale_offset_i16_{unit}", tenths, patch, nodata=-9999, options=deflate2,
            scale=0.1, offset=100.0, unit=unit)
    # Beside a vertical system, GDAL writes them into the pixel scale and the tie point instead of its metadata.
    add("scale_offset_i16_vertical", tenths, patch, nodata=-9999, options=deflate2,
        scale=0.1, offset=100.0, crs="EPSG:2056+5728")
    add("unit_ft_i16", i16, patch, nodata=-9999, options=deflate2, unit="ft")

    # Sparse blocks.
    left_tiles = [
        window(r, c, block, block, width, height)
        for r in range(-(-height // block)) for c in range(-(-width // block))
        if (r + c) % 3 == 0
    ]
    rows = block // 2
    left_strips = [
        window(r, 0, rows, width, width, height) for r in range(-(-height // rows)) if r % 3 == 1
    ]
    sparse = dict(sparse_ok=True)
    gaps = gone(left_tiles, nowhere)
    add("sparse_tile_nodata", f32, patch | gaps, nodata=-9999, left_out=left_tiles,
        options=sparse | deflate3)
    # Without nodata, GDAL reads zeros where there is no block: the sea, in files of islands.
    add("sparse_tile_no_nodata", full, nowhere, left_out=left_tiles, options=sparse | tile)
    add("sparse_tile_scale_offset_no_nodata", whole.astype("i2"), nowhere, left_out=left_tiles,
        scale=0.1, offset=100.0, unit="m", options=sparse | deflate2)
    add("sparse_tile_mask_no_nodata", zeroed, patch, mask=~patch, left_out=left_tiles,
        options=sparse | deflate3)
    add("sparse_strip_nodata", i16, patch | gone(left_strips, nowhere), nodata=-9999,
        left_out=left_strips, options=sparse | strip | dict(compress="lzw", predictor=2))

    # Cloud-optimised files, and overviews appended the old way.
    cog = dict(blocksize=block, overview_count=2, overview_resampling="average")
    add("cog_deflate_f32_pred3", f32, patch, nodata=-9999,
        cog=cog | dict(compress="deflate", predictor=3))
    add("cog_zstd_f32", f32, patch, nodata=-9999, cog=cog | dict(compress="zstd"))
    add("cog_lerc_f32", f32, patch, nodata=-9999, cog=cog | dict(compress="lerc"))
    add("cog_deflate_i16_pred2", i16, patch, nodata=-9999,
        cog=cog | dict(compress="deflate", predictor=2))
    add("cog_mask_deflate_f32_pred3", zeroed, patch, mask=~patch,
        cog=cog | dict(compress="deflate", predictor=3))
    add("overviews_appended_i16", i16, patch, nodata=-9999, options=deflate2, overviews=[2, 4])

    # Shapes.
    add("shape_1x1", full[:1, :1], nowhere[:1, :1], options=dict(compress="deflate"))
    add("shape_one_row", f32[:1], patch[:1], nodata=-9999,
        options=dict(compress="deflate", predictor=3))
    add("shape_one_column_tile", f32[:, :1], patch[:, :1], nodata=-9999, options=deflate3)
    for codec in "none", "deflate":
        add(f"shape_one_strip_{codec}", f32, patch, nodata=-9999,
            options=dict(compress=codec, blockysize=height))
    add("planar_separate_one_band", i16, patch, nodata=-9999,
        options=dict(interleave="band", **deflate2))

    # What is no single band of heights.
    pair = np.stack([i16, i16])
    for interleave in "pixel", "band":
        add(f"two_bands_{interleave}", pair, patch, nodata=-9999, refused=True,
            why="more than one band", options=dict(interleave=interleave, **deflate2))
    add("palette_u8", u8, nowhere, refused=True, why="palette colours, not heights",
        options=dict(compress="deflate", **tile),
        colormap={i: (i, 255 - i, i // 2, 255) for i in range(256)})
    return out


def window(row, col, rows, cols, width, height):
    y, x = row * rows, col * cols
    return Window(x, y, min(cols, width - x), min(rows, height - y))


def gone(windows, like):
    covered = like.copy()
    for w in windows:
        covered[w.toslices()] = True
    return covered


# ---------------------------------------------------------------- writing


def write(f, path):
    bands = f.data if f.data.ndim == 3 else f.data[None]
    count, height, width = bands.shape
    with rasterio.open(
        path, "w", driver="GTiff", width=width, height=height, count=count, dtype=bands.dtype,
        crs=f.crs, transform=f.transform, nodata=f.nodata, **f.options,
    ) as dst:
        if f.point:
            dst.update_tags(AREA_OR_POINT="Point")
        if (f.scale, f.offset) != (1.0, 0.0):
            dst.scales, dst.offsets = [f.scale], [f.offset]
        if f.unit:
            dst.units = [f.unit]
        if f.colormap:
            dst.write_colormap(1, f.colormap)
        if f.left_out:
            for _, w in dst.block_windows(1):
                if w not in f.left_out:
                    dst.write(bands[(slice(None), *w.toslices())], window=w)
        else:
            dst.write(bands)
        if f.mask is not None:
            dst.write_mask(f.mask)
    if f.overviews:
        with rasterio.open(path, "r+") as dst:
            dst.build_overviews(f.overviews, Resampling.average)
    if f.raw_mask:
        store_mask_uncompressed(path)


def write_cog(f, path):
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.tif"
        write(f, plain)
        rasterio.shutil.copy(plain, path, driver="COG", **f.cog)


def store_mask_uncompressed(path):
    """GDAL always deflates an internal mask; other writers do not."""
    raw = bytearray(path.read_bytes())
    assert raw[:4] == b"II*\0"
    image = struct.unpack_from("<I", raw, 4)[0]
    entries = struct.unpack_from("<H", raw, image)[0]
    mask = struct.unpack_from("<I", raw, image + 2 + 12 * entries)[0]

    at = {}  # tag -> (struct format of its values, where they lie)
    for i in range(struct.unpack_from("<H", raw, mask)[0]):
        entry = mask + 2 + 12 * i
        tag, kind, count = struct.unpack_from("<HHI", raw, entry)
        layout = f"<{count}{'?BBHI'[kind]}"
        inline = struct.calcsize(layout) <= 4
        at[tag] = layout, entry + 8 if inline else struct.unpack_from("<I", raw, entry + 8)[0]

    def get(tag):
        return struct.unpack_from(at[tag][0], raw, at[tag][1])

    def put(tag, *values):
        struct.pack_into(at[tag][0], raw, at[tag][1], *values)

    assert get(254) == (4,) and get(259) == (8,), "a deflated mask is the second directory"
    offsets, counts = (324, 325) if 324 in at else (273, 279)
    new_offsets, new_counts = [], []
    for start, size in zip(get(offsets), get(counts)):
        block = zlib.decompress(raw[start:start + size])
        new_offsets.append(len(raw))
        new_counts.append(len(block))
        raw += block
    put(259, 1)
    put(offsets, *new_offsets)
    put(counts, *new_counts)
    path.write_bytes(raw)


# ---------------------------------------------------------------- reading back


def heights(ds, missing=None):
    """Band 1 as GDAL reads it: scaled, NaN where masked out."""
    out = ds.read(1).astype("f8") * ds.scales[0] + ds.offsets[0]
    out[ds.read_masks(1) == 0] = np.nan
    if missing is not None:
        out[missing] = np.nan
    # One kind of NaN, or equal arrays would differ in their bytes.
    out[np.isnan(out)] = np.nan
    return out


def sparse_blocks(ds):
    """Where the file holds no data at all: GDAL knows no offset for such blocks."""
    holes = np.zeros(ds.shape, bool)
    for (row, col), w in ds.block_windows(1):
        if ds.get_tag_item(f"BLOCK_OFFSET_{col}_{row}", "TIFF", bidx=1) is None:
            holes[w.toslices()] = True
    return holes


def epsg_codes(crs):
    """The horizontal and the vertical code, as the file has them: nothing is guessed."""
    described = crs.to_dict(projjson=True)
    parts = described.get("components", [described])
    # A horizontal system with a datum shift attached is described around its source.
    codes = [p.get("source_crs", p).get("id", {}) for p in parts]
    codes = [c.get("code") if c.get("authority") == "EPSG" else None for c in codes]
    return codes[0], codes[1] if len(codes) > 1 else None


def check(f, ds, path):
    """The file is what its name says, and GDAL reads what was written."""
    name = f.name
    structure = ds.tags(ns="IMAGE_STRUCTURE")
    options = f.cog or f.options
    codec = options.get("compress", "none")
    assert structure.get("COMPRESSION", "NONE") == codec.upper(), name
    assert int(structure.get("PREDICTOR", 1)) == options.get("predictor", 1), name
    assert (structure.get("LAYOUT") == "COG") == bool(f.cog), name

    head = path.read_bytes()[:4]
    big = "endianness" in options
    magic = 43 if "bigtiff" in options else 42
    assert head == (b"MM" if big else b"II") + struct.pack(">H" if big else "<H", magic), name

    rows, cols = ds.block_shapes[0]
    if "tiled" in options:
        assert (rows, cols) == (options["blockysize"], options["blockxsize"]), name
    elif name != "shape_one_strip_none" and "blockysize" in options:
        # Left out: libtiff shows a lone uncompressed strip as if it were several.
        assert (rows, cols) == (min(options["blockysize"], ds.height), ds.width), name
    if f.cog:
        assert len(ds.overviews(1)) == f.cog["overview_count"], name

    assert ds.dtypes[0] == str(f.data.dtype), name
    if f.transform is not None:
        assert np.allclose(ds.transform, f.transform, rtol=1e-14, atol=1e-9), name

    holes = sparse_blocks(ds)
    assert np.array_equal(holes, gone(f.left_out, np.zeros(ds.shape, bool))), name
    source = f.data if f.data.ndim == 3 else f.data[None]
    read = ds.read()
    if f.tolerance:
        error = np.abs(read[:, ~f.missing] - source[:, ~f.missing]).max()
        # A float near 2000 m is rounded by up to half of 2^-13 on top.
        assert 0 < error <= f.tolerance + 2**-14, (name, error)
    else:
        assert np.array_equal(read[:, ~holes], source[:, ~holes],
                              equal_nan=source.dtype.kind == "f"), name
    if not f.refused:
        assert np.array_equal(np.isnan(heights(ds)), f.missing), name
    return holes


def describe(f, path, store):
    with rasterio.open(path) as ds:
        holes = check(f, ds, path)
        nodata = ds.nodata
        horizontal, vertical = epsg_codes(ds.crs) if ds.crs else (None, None)
        flags = ds.mask_flag_enums[0]
        entry = dict(
            file=path.name,
            width=ds.width,
            height=ds.height,
            bands=ds.count,
            dtype=ds.dtypes[0],
            crs_epsg=horizontal,
            vertical_epsg=vertical,
            crs_wkt=ds.crs.to_wkt() if ds.crs else None,
            is_projected=bool(ds.crs and ds.crs.is_projected),
            is_geographic=bool(ds.crs and ds.crs.is_geographic),
            transform=list(ds.transform.to_gdal()),
            area_or_point=ds.tags().get("AREA_OR_POINT"),
            nodata="nan" if nodata is not None and np.isnan(nodata) else nodata,
            scale=ds.scales[0],
            offset=ds.offsets[0],
            unit=ds.units[0] or None,
            has_mask=MaskFlags.per_dataset in flags and MaskFlags.alpha not in flags,
            sparse=bool(holes.any()),
            overviews=[],
            refused=f.refused,
            may_refuse=f.may_refuse,
            why=f.why,
            expected=None if f.refused else store(heights(ds)),
        )
        if f.union is not None:
            entry["expected_union"] = store(heights(ds, f.union))
        levels = len(ds.overviews(1))
    for level in range(levels):
        with rasterio.open(path, overview_level=level) as ds:
            entry["overviews"].append([ds.width, ds.height])
            if level == 0:
                entry["expected_overview1"] = store(heights(ds))
    return entry


# ---------------------------------------------------------------- the set


def remove_earlier(out):
    """Only what an earlier run made, by its own list."""
    manifest = out / "manifest.json"
    if manifest.exists():
        for entry in json.loads(manifest.read_text()):
            (out / entry["file"]).unlink(missing_ok=True)
    for path in (out / "expected").glob("*.f64"):
        if re.fullmatch(r"[0-9a-f]{16}\.f64", path.name):
            path.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent)
    parser.add_argument("--size", type=int, nargs=2, default=(67, 47), metavar=("W", "H"))
    parser.add_argument("--block", type=int, default=32, help="tile edge; strips are half as high")
    args = parser.parse_args()
    expected = args.out / "expected"
    expected.mkdir(parents=True, exist_ok=True)
    remove_earlier(args.out)

    def store(array):
        raw = array.astype("<f8").tobytes()
        name = hashlib.sha256(raw).hexdigest()[:16] + ".f64"
        (expected / name).write_bytes(raw)
        return name

    manifest = []
    # Every flavour without georeferencing would otherwise be warned about.
    warnings.simplefilter("ignore", NotGeoreferencedWarning)
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        for f in flavours(*args.size, args.block):
            path = args.out / f"{f.name}.tif"
            (write_cog if f.cog else write)(f, path)
            manifest.append(describe(f, path, store))

    manifest.sort(key=lambda entry: entry["file"])
    assert len({entry["file"] for entry in manifest}) == len(manifest)
    (args.out / "manifest.json").write_text(json.dumps(manifest, indent=1, allow_nan=False) + "\n")
    # What GDAL puts beside a file is not in the file, and the reader must not need it.
    sidecars = [p for kind in ("*.aux.xml", "*.msk", "*.ovr") for p in args.out.glob(kind)]
    assert not sidecars, sidecars

    for entry in manifest:
        size = (args.out / entry["file"]).stat().st_size
        verdict = "refused" if entry["refused"] else entry["expected"]
        print(f"{entry['file']:<46} {entry['dtype']:<8} {entry['width']:>4}x{entry['height']:<4}"
              f"{size:>9}  {verdict}")
    images = sum((args.out / e["file"]).stat().st_size for e in manifest)
    arrays = [p.stat().st_size for p in expected.glob("*.f64")]
    listing = (args.out / "manifest.json").stat().st_size
    print(f"{len(manifest)} files, {images} bytes; {len(arrays)} arrays, {sum(arrays)} bytes; "
          f"manifest {listing} bytes; {images + sum(arrays) + listing} bytes in all")


if __name__ == "__main__":
    main()
