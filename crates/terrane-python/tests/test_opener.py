"""Terrane files through rasterio, as GeoTIFFs that are nowhere."""

import functools
import io
import threading

import numpy as np
import pytest
import rasterio
from rasterio.errors import RasterioIOError

import pyterrane
from conftest import CRS, TRANSFORM, hills, served


class Counting:
    """An opener that keeps what it opened."""

    def __init__(self, **options):
        self.files = []
        self.options = options

    def __call__(self, path, mode="rb"):
        file = pyterrane.opener(path, mode, **self.options)
        self.files.append(file)
        return file

    @property
    def blocks_decoded(self):
        return sum(file.blocks_decoded for file in self.files)


def is_decoded(trn, folder):
    """Compares a file with what `decode` writes, in everything that rasterio says of both."""
    out = folder / "decoded.tif"
    pyterrane.decode(trn, out, overwrite=True)
    with rasterio.open(trn, opener=pyterrane.opener) as ours, rasterio.open(out) as theirs:
        for name in ("driver", "crs", "transform", "shape", "dtypes", "nodata", "units", "scales", "offsets", "descriptions"):
            assert getattr(ours, name) == getattr(theirs, name) or np.isnan(ours.nodata), name
        assert ours.tags()["AREA_OR_POINT"] == theirs.tags()["AREA_OR_POINT"]
        np.testing.assert_array_equal(ours.read(1), theirs.read(1))
        np.testing.assert_array_equal(ours.read_masks(1), theirs.read_masks(1))
        known = ours.read(1, masked=True)
        if known.dtype.kind == "f":
            known = np.ma.masked_invalid(known)
        tags = ours.tags(1)
        assert float(tags["STATISTICS_MINIMUM"]) == known.min() and float(tags["STATISTICS_MAXIMUM"]) == known.max()
        assert float(tags["STATISTICS_VALID_PERCENT"]) == pytest.approx(100 * known.count() / known.size, abs=1e-4)
        return ours.dtypes[0]


def test_it_is_what_decode_writes(trn, tmp_path):
    assert is_decoded(trn, tmp_path) == "float32"
    terrain = pyterrane.open(trn)
    with rasterio.open(trn, opener=pyterrane.opener) as raster:
        assert raster.crs == rasterio.CRS.from_string(CRS) and tuple(raster.transform)[:6] == TRANSFORM
        assert raster.overviews(1) == [2, 4, 8] and raster.block_shapes == [(64, 64)]
        assert raster.tags()["TERRANE_BOUND_M"] == "0.1"
        np.testing.assert_array_equal(raster.read(1, masked=True).filled(np.nan), terrain.read())
        window = ((33, 210), (71, 72))
        np.testing.assert_array_equal(
            raster.read(1, window=window, masked=True).filled(np.nan), terrain.read()[33:210, 71:72]
        )
    for level in (1, 2, 3):
        with rasterio.open(trn, opener=pyterrane.opener, overview_level=level - 1) as raster:
            np.testing.assert_array_equal(raster.read(1, masked=True).filled(np.nan), terrain.read(level=level))


def test_types_are_the_sources(tmp_path):
    heights = hills(150, 130)
    wide = heights.astype("float64") + 1e-9
    pyterrane.encode(wide, tmp_path / "wide.trn", lossless=True, tile=64, transform=TRANSFORM, crs=CRS)
    assert is_decoded(tmp_path / "wide.trn", tmp_path) == "float64"
    for dtype, nodata in (("int16", -32768), ("uint16", 0), ("int32", -1)):
        source = tmp_path / f"{dtype}.tif"
        numbers = np.where(np.isnan(heights), nodata, np.nan_to_num(heights).round()).astype(dtype)
        profile = {"driver": "GTiff", "height": 150, "width": 130, "count": 1, "dtype": dtype, "nodata": nodata,
                   "crs": "EPSG:3857", "transform": rasterio.Affine(30, 0, 0, 0, -30, 0)}
        with rasterio.open(source, "w", **profile) as raster:
            raster.write(numbers, 1)
            raster.update_tags(AREA_OR_POINT="Point")
        pyterrane.encode(source, tmp_path / "numbers.trn", lossless=True, tile=64, overwrite=True)
        assert is_decoded(tmp_path / "numbers.trn", tmp_path) == dtype
        with rasterio.open(tmp_path / "numbers.trn", opener=pyterrane.opener) as raster:
            np.testing.assert_array_equal(raster.read(1), numbers)


def test_a_window_decodes_its_tiles_alone(trn):
    opener = Counting()
    with rasterio.open(trn, opener=opener) as raster:
        assert opener.blocks_decoded == 0
        raster.read(1, window=((70, 90), (70, 90)))
        assert opener.blocks_decoded == 1
        raster.read(1, window=((70, 140), (70, 90)))
        assert opener.blocks_decoded == 3 - 1
        raster.read(1, out_shape=(35, 38))
        assert opener.blocks_decoded == 3
    assert all(file.closed for file in opener.files)


def test_it_is_a_raw_file(trn):
    with pyterrane.opener(trn) as file:
        assert isinstance(file, io.RawIOBase) and file.readable() and file.seekable() and not file.writable()
        whole = file.read()
        assert file.tell() == len(whole) == file.seek(0, io.SEEK_END) and file.read(10) == b""
        assert file.seek(-7, io.SEEK_END) == len(whole) - 7 and file.readall() == whole[-7:]
        assert file.seek(100) == 100 and file.seek(23, io.SEEK_CUR) == 123
        buffer = bytearray(50)
        assert file.readinto(buffer) == 50 and buffer == whole[123:173]
        assert file.seek(1 << 62) == 1 << 62 and file.read(5) == b""
        for offset, whence in ((-1, 0), (0, 7)):
            with pytest.raises(ValueError):
                file.seek(offset, whence)
        assert "dem.trn" in repr(file)
    for call in (file.read, file.tell, file.readable):
        with pytest.raises(ValueError, match="closed"):
            call()
    with io.BufferedReader(pyterrane.opener(trn)) as file:
        file.seek(16_380)
        assert file.read(8000) == whole[16_380:24_380]
    # Any reader of GeoTIFFs.
    with rasterio.MemoryFile(whole) as memory, memory.open() as raster:
        np.testing.assert_array_equal(raster.read(1, masked=True).filled(np.nan), pyterrane.open(trn).read())


def test_threads_read_at_once(trn):
    expected = pyterrane.open(trn).read()
    found = {}

    def read(row):
        with rasterio.open(trn, opener=functools.partial(pyterrane.opener, memory_limit=1)) as raster:
            found[row] = raster.read(1, window=((row, row + 50), (0, 300)), masked=True).filled(np.nan)

    threads = [threading.Thread(target=read, args=(row,)) for row in range(0, 200, 50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for row, heights in found.items():
        np.testing.assert_array_equal(heights, expected[row : row + 50])
    assert len(found) == 4


# rasterio cannot raise what its callback does, and prints it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_is_wrong_is_an_error(dem, trn, tmp_path):
    data = bytearray(open(trn, "rb").read())
    (tmp_path / "cut.trn").write_bytes(data[: len(data) // 2])
    data[len(data) * 2 // 3] ^= 1
    (tmp_path / "damaged.trn").write_bytes(data)
    (tmp_path / "other.trn").write_bytes(b"no terrain")
    for name in ("cut.trn", "other.trn", "missing.trn"):
        with pytest.raises(RasterioIOError), rasterio.open(tmp_path / name, opener=pyterrane.opener):
            pass
    with rasterio.open(tmp_path / "damaged.trn", opener=pyterrane.opener) as raster, pytest.raises(RasterioIOError):
        raster.read(1)
    with pytest.raises(FileNotFoundError):
        pyterrane.opener(tmp_path / "missing.trn")
    with pytest.raises(FileNotFoundError, match="must end in .trn"):
        pyterrane.opener("https://localhost/dem.trn.aux.xml")
    with pytest.raises(io.UnsupportedOperation, match="only read"):
        pyterrane.opener(trn, "r+b")
    with pyterrane.opener(trn, memory_limit=0.001) as file, pytest.raises(MemoryError, match="fewer at a time"):
        file.read(1_000_000)
    # What stands beside a raster is opened as it is.
    with rasterio.open(dem, opener=pyterrane.opener) as raster:
        assert raster.shape == (280, 300)


def test_an_address_is_passed_on(trn):
    with served(trn) as (address, asked):
        with rasterio.open(f"{address}/dem.trn", opener=pyterrane.opener) as raster:
            part = raster.read(1, window=((0, 20), (0, 20)), masked=True).filled(np.nan)
        np.testing.assert_array_equal(part, pyterrane.open(trn).read()[:20, :20])
        paths = [path for path, _ in asked]
        assert set(paths) == {"/dem.trn"} and len(paths) <= 4, "head, index and the records of one tile"


def test_rioxarray_opens_it(trn):
    rioxarray = pytest.importorskip("rioxarray")
    heights = rioxarray.open_rasterio(trn, opener=pyterrane.opener, masked=True)
    np.testing.assert_array_equal(heights.values[0], pyterrane.open(trn).read())
    assert heights.rio.crs == rasterio.CRS.from_string(CRS)
    assert heights.rio.bounds() == pyterrane.open(trn).bounds
