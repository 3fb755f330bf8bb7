"""Makes random GeoTIFFs with GDAL, and records what GDAL reads from each, as `make.py` does for its matrix.

    python generate.py --out DIR --count 3000 [--first 0]

Written into DIR: N.tif, manifest.json and expected/*.f64. Every file is made of a number, so that one that fails can be made
again alone. In the manifest `refused` files must be refused with a clear sentence; all others must be read. Needs numpy and
rasterio.
"""

import argparse
import json
import warnings
from pathlib import Path
from xml.sax.saxutils import escape

import make
import numpy as np
import rasterio
from rasterio.control import GroundControlPoint
from rasterio.crs import CRS
from rasterio.enums import Resampling
from rasterio.errors import NotGeoreferencedWarning
from rasterio.transform import Affine

SYSTEMS = [
    *("EPSG:2056", "EPSG:32632", "EPSG:32719", "EPSG:4326", "EPSG:3857", "EPSG:25832", "EPSG:3035", "EPSG:2193", "EPSG:27700"),
    *("EPSG:5514", "EPSG:3413", "EPSG:31287", "EPSG:26910", "EPSG:2263", "EPSG:4269", "EPSG:2056+5728", "EPSG:25832+7837"),
    *("EPSG:32632+3855", make.CUSTOM_WKT, "+proj=laea +lat_0=52 +lon_0=10 +x_0=4321000 +y_0=3210000 +ellps=GRS80 +units=m"),
    "+proj=stere +lat_0=90 +lat_ts=70 +lon_0=-45 +datum=WGS84 +units=m",
]
FLOATS = "float32", "float64"
TYPES = ["float32"] * 6 + ["int16"] * 4 + ["float64", "uint8", "int8", "uint16", "int32", "uint32"]
COMPRESSIONS = ["none", "none", "deflate", "deflate", "lzw", "lzw", "zstd", "packbits", "lerc", "lerc_deflate", "lerc_zstd"]
UNREADABLE = "lzma", "jpeg"
UNITS = {"m": 1.0, "metre": 1.0, "ft": 0.3048, "US survey foot": 1200 / 3937, "cm": 0.01}


class Maker:
    """One file, made of its number."""

    def __init__(self, number):
        self.random = np.random.default_rng([20251, number])
        self.number, self.refused, self.may_refuse = number, None, False

    def pick(self, choices):
        """One of several, each as likely."""
        return choices[int(self.random.integers(len(choices)))]

    def chance(self, part):
        """True once in so many times."""
        return self.random.integers(part) == 0

    def size(self):
        """Columns or rows: often near a border of blocks."""
        kind = self.random.integers(8)
        if kind == 0:
            return int(self.random.integers(1, 4))
        return int(self.random.integers(1, 70)) if kind < 6 else int(self.pick([15, 16, 17, 31, 32, 33, 48, 64, 65]))

    def heights(self, dtype, height, width):
        """Numbers of a type: hills, few values, noise, or one value."""
        v, u = np.mgrid[0:height, 0:width]
        hills = 60 + 30 * np.sin(u / 9 + self.number) * np.cos(v / 7) + 8 * self.random.standard_normal((height, width))
        kind = self.random.integers(5)
        if kind == 1:
            hills = np.round(hills / 20) * 20
        elif kind == 2:
            hills = np.full((height, width), 17.25)
        if np.dtype(dtype).kind == "f":
            if kind == 3:
                hills = hills * 10.0 ** self.random.integers(-6, 7)
            return (hills - 300 * self.random.integers(2)).astype(dtype)
        info = np.iinfo(dtype)
        if kind == 3:
            return self.random.integers(info.min, info.max, (height, width), endpoint=True).astype(dtype)
        if info.bits > 8:
            hills = hills * 30 - (2000 if info.min < 0 else 0)
        return np.clip(np.round(hills), info.min, info.max).astype(dtype)

    def options(self, dtype):
        """Creation options of GDAL."""
        options = {}
        if self.chance(2):
            sides = [16, 16, 32, 32, 48, 64]
            options |= {"tiled": True, "blockxsize": self.pick(sides), "blockysize": self.pick(sides)}
        else:
            options["blockysize"] = int(self.random.integers(1, 40))
        compression = self.pick(COMPRESSIONS)
        if self.chance(40):
            compression = "lzma" if dtype != "uint8" or self.chance(2) else "jpeg"
        if compression != "none":
            options["compress"] = compression
        if compression in UNREADABLE:
            self.refused = f"{compression} compression"
        if compression in ("deflate", "lzw", "zstd"):
            options["predictor"] = self.pick([1, 2, 3] if np.dtype(dtype).kind == "f" else [1, 2])
        if compression.startswith("lerc") and self.chance(4):
            options["max_z_error"] = self.pick([0.01, 0.5])
        if self.chance(5):
            options["bigtiff"] = "yes"
        if self.chance(5):
            options["endianness"] = "big"
            if compression.startswith("lerc"):
                self.refused = "LERC in a big-endian file"
        if self.chance(4):
            options["interleave"] = self.pick(["pixel", "band"])
        if dtype == "uint16" and compression in ("none", "deflate", "lzw") and options.get("predictor", 1) == 1 and self.chance(3):
            options["nbits"] = 12
        return options

    def no_data(self, dtype, heights):
        """A value of missing pixels, or none; often one that is there."""
        if self.chance(3):
            return None
        if np.dtype(dtype).kind == "f":
            value = self.pick([-9999.0, np.nan, make.F32_MIN, 0.0, float(heights.flat[0]), -32768.0, 1e20])
        else:
            info = np.iinfo(dtype)
            value = self.pick([info.min, info.max, 0, int(heights.flat[0])])
        return value

    def place(self):
        """Coordinate system, transform, and whether pixels are points."""
        crs = None if self.chance(10) else self.pick(SYSTEMS)
        step = 1 / 3600 if crs in ("EPSG:4326", "EPSG:4269") else float(self.pick([0.5, 1, 2, 10, 30.0]))
        x, y = (8.25, 47.5) if step < 0.1 else (2_600_000.25, 1_200_000.75)
        kind = self.random.integers(8)
        if kind == 0:
            transform = None
        elif kind == 1:
            turn = Affine.rotation(float(self.random.uniform(-80, 80))) * Affine.scale(step, -1.5 * step)
            transform = Affine.translation(x, y) * turn
        elif kind == 2:
            transform = Affine(step, 0, x, 0, step, y)
        elif kind == 3:
            transform = Affine(step, 0, x, 0, -2 * step, y)
        else:
            transform = Affine(step, 0, x, 0, -step, y)
        return crs, transform, bool(self.chance(4))

    def write_beside(self, path, heights):
        """Files beside the raster that say something of it: GDAL's own (PAM) and a world file."""
        if self.chance(2):
            step = float(self.pick([0.5, 2, 10]))
            lines = [step, 0, 0, -step, 2_600_000.25, 1_200_000.75]
            path.with_suffix(self.pick([".tfw", ".TFW", ".tifw", ".wld"])).write_text("\n".join(map(str, lines)) + "\n")
            if self.chance(2):
                return
        parts, band = [], []
        if self.chance(2):
            crs = self.pick(SYSTEMS)
            text = CRS.from_user_input(crs).to_wkt(version=self.pick(["WKT1_GDAL", "WKT2_2019"]))
            order = "2,1" if crs in ("EPSG:4326", "EPSG:4269", "EPSG:2193") else "1,2"
            mapping = self.pick(["", f' dataAxisToSRSAxisMapping="{order}"'])
            parts.append(f"<{(tag := self.pick(['SRS', 'SRS', 'srs']))}{mapping}>{escape(text)}</{tag}>")
            # A system without a code, which GDAL has keys for.
            self.may_refuse |= not crs.startswith("EPSG")
        if self.chance(2):
            parts.append(f"<GeoTransform> 5.0e5, {self.pick([1, 2.5])}, {self.pick([0, 0.5])}, 5200000,0 , -3</GeoTransform>")
        if self.chance(2):
            band.append(f"<NoDataValue>{self.pick([heights.flat[-1].item(), 1, 0])}</NoDataValue>")
        if self.chance(3):
            # GDAL's versions differ where the raster has one too.
            self.may_refuse = True
            band.append("<Offset>-5</Offset><Scale>2</Scale>" if self.chance(2) else "<UnitType>ft</UnitType>")
        if self.chance(3):
            parts.append('<Metadata><MDI key="AREA_OR_POINT">Point</MDI></Metadata>')
            band.append('<Metadata><MDI key="STATISTICS_MAXIMUM">1</MDI></Metadata>')
        number = 2 if self.chance(8) else 1
        parts.append(f'<PAMRasterBand band="{number}">{"".join(band)}</PAMRasterBand>')
        if self.chance(20):
            parts.append('<GCPList><GCP Id="1" Pixel="0" Line="0" X="1" Y="2"/></GCPList>')
            self.refused = self.refused or "ground control points beside it"
        start = self.pick(["", "", "", '<?xml version="1.0"?>\n'])
        # GDAL passes over a file that begins with a declaration.
        self.may_refuse |= bool(start)
        if start and self.refused == "ground control points beside it":
            self.refused = None
        (path.parent / (path.name + ".aux.xml")).write_text(f"{start}<PAMDataset>{''.join(parts)}</PAMDataset>")

    def write(self, path):
        """Makes the file."""
        width, height, dtype = self.size(), self.size(), self.pick(TYPES)
        heights, options = self.heights(dtype, height, width), self.options(dtype)
        if options.get("nbits"):
            heights &= 4095
        no_data, (crs, transform, point) = self.no_data(dtype, heights), self.place()
        if options.get("nbits") and no_data is not None:
            no_data = int(no_data) & 4095
        if no_data is not None:
            holes = self.random.random((height, width)) < self.pick([0, 0.05, 0.5, 1])
            heights[holes] = no_data
        if np.dtype(dtype).kind == "f" and self.chance(5):
            heights[self.random.random((height, width)) < 0.1] = np.nan
        bands, extra = 1, self.random.integers(40)
        if extra == 0:
            bands, self.refused = 2, "two bands"
        elif extra == 1 and dtype in ("uint8", "uint16", "int16", "float32"):
            bands, self.refused, options["alpha"] = 2, "an alpha band", "yes"
        points = []
        if self.chance(30):
            corners = ((0, 0), (0, width), (height, 0), (height, width))
            points = [GroundControlPoint(row, col, 8 + col / 100, 47 - row / 90 + col / 500) for row, col in corners]
            transform, crs, self.refused = None, None, "ground control points"
        sparse = not points and bands == 1 and self.chance(6)
        with rasterio.open(
            path, "w", driver="GTiff", width=width, height=height, count=bands, dtype=dtype, crs=crs, transform=transform,
            nodata=no_data, **({"sparse_ok": True} if sparse else {}), **options,
        ) as file:
            if points:
                file.gcps = points, CRS.from_epsg(4326)
            if point:
                file.update_tags(AREA_OR_POINT="Point")
            if self.chance(6):
                file.scales, file.offsets = [float(self.pick([0.1, 0.01, 2.0]))] * bands, [float(self.pick([0, -500, 0.25]))] * bands
            if self.chance(5):
                file.units = [self.pick(list(UNITS))] * bands
            for _, window in file.block_windows(1) if sparse else [(0, rasterio.windows.Window(0, 0, width, height))]:
                if not sparse or self.chance(2):
                    for band in range(1, bands + 1):
                        file.write(heights[window.toslices()], band, window=window)
            is_masked, is_beside = bands == 1 and self.chance(8), bool(self.chance(2))
            if is_masked:
                with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=not is_beside):
                    file.write_mask(self.random.random((height, width)) < 0.7)
        if not points and self.chance(3):
            self.write_beside(path, heights)
        # The overviews of a mask in a file of its own would be in yet another file.
        if bands == 1 and not points and not (is_masked and is_beside) and self.chance(5) and min(width, height) > 1:
            with rasterio.open(path, "r+") as file:
                file.build_overviews(self.pick([[2], [2, 4], [3]]), self.pick([Resampling.average, Resampling.nearest]))


def as_heights(dataset, main):
    """What GDAL reads, scaled as the whole file is, in metres; NaN where there is no data: by mask or by nodata, and what is
    no number."""
    stored = dataset.read(1)
    # In the order of the reader: scaled first, then metres, each rounded.
    heights = stored.astype("f8") * main.scales[0] + main.offsets[0]
    heights = heights * UNITS.get(main.units[0], 1.0)
    missing = dataset.read_masks(1) == 0
    if dataset.nodata is not None:
        # Also where a mask lies over it, which GDAL then passes over; with the two units in the last place that GDAL gives.
        nodata = np.array(dataset.nodata).astype(stored.dtype).astype("f8")
        spare = 2 * np.finfo(stored.dtype).eps * np.abs(stored.astype("f8") + nodata) if stored.dtype.kind == "f" else 0
        missing |= (stored == nodata) | (np.abs(stored.astype("f8") - nodata) < spare)
    heights[missing | ~(np.abs(heights) < 1e30)] = np.nan
    return heights


def describe(maker, path, store):
    """A row of the manifest."""
    with rasterio.open(path) as dataset:
        nodata = dataset.nodata
        horizontal, vertical = make.epsg_codes(dataset.crs) if dataset.crs else (None, None)
        entry = dict(
            file=path.name, width=dataset.width, height=dataset.height, dtype=dataset.dtypes[0],
            crs_epsg=horizontal, vertical_epsg=vertical,
            is_projected=bool(dataset.crs and dataset.crs.is_projected),
            is_geographic=bool(dataset.crs and dataset.crs.is_geographic),
            transform=list(dataset.transform.to_gdal()), area_or_point=dataset.tags().get("AREA_OR_POINT"),
            nodata="nan" if nodata is not None and np.isnan(nodata) else nodata,
            # GDAL's answer depends on which of the two it happens to ask first.
            is_point_unclear=path.with_name(path.name + ".aux.xml").exists(),
            unit=None, overviews=[], refused=bool(maker.refused), may_refuse=maker.may_refuse, why=maker.refused,
            about=f"{dataset.profile} {dataset.units} {dataset.scales} {[flag.name for flag in dataset.mask_flag_enums[0]]}",
            expected=None if maker.refused else store(as_heights(dataset, dataset)),
        )
        for level in range(len(dataset.overviews(1))):
            with rasterio.open(path, overview_level=level) as overview:
                entry["overviews"].append([overview.width, overview.height])
                if level == 0 and not maker.refused:
                    entry["expected_overview1"] = store(as_heights(overview, dataset))
    return entry


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    (args.out / "expected").mkdir(parents=True)
    warnings.simplefilter("ignore", NotGeoreferencedWarning)

    def store(array):
        name = f"{len(stored)}.f64"
        stored.append(name)
        (args.out / "expected" / name).write_bytes(array.astype("<f8").tobytes())
        return name

    manifest, stored = [], []
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        for number in range(args.first, args.first + args.count):
            maker, path = Maker(number), args.out / f"{number}.tif"
            maker.write(path)
            manifest.append(describe(maker, path, store))
    (args.out / "manifest.json").write_text(json.dumps(manifest, allow_nan=False) + "\n")


if __name__ == "__main__":
    main()
