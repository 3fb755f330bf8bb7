"""Files, their description, their heights and their surface."""

import os
import pickle
import socket
import threading

import numpy as np
import pytest
import rasterio

import pyterrane
from conftest import CRS, TRANSFORM, hills, served


def read(path):
    with rasterio.open(path) as file:
        return file.read(1, masked=True).filled(np.nan)


def test_a_raster_comes_back_within_its_bound(dem, trn):
    source, terrain = read(dem), pyterrane.open(trn)
    heights = terrain.read()
    assert heights.dtype == np.float32 and heights.shape == source.shape
    assert (np.isnan(heights) == np.isnan(source)).all()
    assert np.nanmax(np.abs(heights - source)) <= 0.1
    assert terrain.max_error_m <= terrain.bound_m == 0.1 and 0 < terrain.rmse_m < 0.1
    report = pyterrane.verify(trn, against=dem)
    assert report["holds"] and report["nodata_equal"] and report["failures"] == []
    assert report["max_error_m"] == pytest.approx(np.nanmax(np.abs(heights - source)), abs=1e-4)


def test_the_description_is_rasterios(dem, trn):
    terrain = pyterrane.open(trn)
    with rasterio.open(dem) as file:
        assert terrain.transform == tuple(file.transform)[:6] == TRANSFORM
        assert terrain.bounds == tuple(file.bounds)
        assert terrain.shape == file.shape
        assert rasterio.CRS.from_string(terrain.crs) == file.crs
    assert terrain.crs == CRS and terrain.method == "context" and not terrain.lossless
    assert terrain.levels == [(280, 300), (140, 150), (70, 75), (35, 38)]
    assert pyterrane.info(trn) == terrain.info and terrain.info["tile"] == terrain.tile == 64


def test_decoding_is_reading(trn, tmp_path):
    terrain = pyterrane.open(trn)
    box = (2_600_020.0, 1_199_800.0, 2_600_100.0, 1_199_900.0)
    for index, part in enumerate([{}, {"level": 2}, {"bbox": box}, {"bbox": box, "resolution": 0.4}, {"resolution": 7.0}]):
        out = tmp_path / f"{index}.tif"
        shape = pyterrane.decode(trn, out, **part)
        heights, transform = terrain.grid(**part)
        with rasterio.open(out) as file:
            assert shape == file.shape == heights.shape
            assert transform == pytest.approx(tuple(file.transform)[:6], abs=1e-9)
        np.testing.assert_array_equal(read(out), heights)


def test_the_surface_passes_through_pixels_and_has_their_slopes(trn):
    terrain = pyterrane.open(trn)
    heights = terrain.read()
    rows, columns = np.mgrid[3:60:7, 5:120:11]
    x, y = terrain.xy(rows, columns)
    there = terrain.height(x, y)
    assert there.shape == rows.shape
    np.testing.assert_allclose(there, heights[rows, columns], atol=1e-4)
    # Differences over a millimetre against the analytic gradient.
    step = 1e-3
    east = (terrain.height(x + step, y) - terrain.height(x - step, y)) / (2 * step)
    north = (terrain.height(x, y + step) - terrain.height(x, y - step)) / (2 * step)
    np.testing.assert_allclose(terrain.gradient(x, y), [east, north], atol=1e-5)
    np.testing.assert_allclose(terrain.slope(x, y), np.degrees(np.arctan(np.hypot(east, north))), atol=1e-3)
    away = np.degrees(np.arctan2(-east, -north)) % 360
    turn = (terrain.aspect(x, y) - away + 180) % 360 - 180
    assert np.abs(turn).max() < 0.1
    # Between pixel centres, where the third derivatives have their steps.
    x, y = x + 0.3, y + 0.2
    bend = (terrain.gradient(x + step, y)[0] - terrain.gradient(x - step, y)[0]) / (2 * step)
    bend += (terrain.gradient(x, y + step)[1] - terrain.gradient(x, y - step)[1]) / (2 * step)
    np.testing.assert_allclose(terrain.laplacian(x, y), bend, atol=1e-4)
    for curvature in (terrain.profile_curvature, terrain.plan_curvature):
        assert np.isfinite(curvature(x, y)).all()
    assert isinstance(terrain.height(*terrain.xy(10, 10)), float)
    assert np.isnan(terrain.height(0.0, 0.0))
    assert terrain.height(np.empty(0), np.empty(0)).shape == (0,)


def test_files_are_opened_lazily_closed_and_sent(trn, tmp_path, monkeypatch):
    monkeypatch.chdir(os.path.dirname(trn))
    terrain = pyterrane.open(os.path.basename(trn))
    assert repr(terrain) == "<pyterrane.Terrain 'dem.trn': 300 x 280 pixels, EPSG:2056+5728, context, within 0.1 m>"
    monkeypatch.chdir(tmp_path)
    again = pickle.loads(pickle.dumps(terrain))
    np.testing.assert_array_equal(again.read(), terrain.read())
    with again:
        pass
    assert repr(again).endswith("closed>")
    with pytest.raises(ValueError, match="closed"):
        again.read()


def test_files_are_read_from_the_web_by_ranges(trn):
    with served(trn) as (address, asked):
        terrain = pyterrane.open(f"{address}/dem.trn")
        lengths = [length for _, length in asked]
        assert lengths == [min(16384, os.path.getsize(trn))]
        x, y = terrain.xy(20, 20)
        assert terrain.height(x, y) == pyterrane.open(trn).height(x, y)
        lengths = [length for _, length in asked]
        assert len(lengths) <= 3 and sum(lengths) < 18_000, "head, index and the records of one tile"


def test_a_server_that_never_answers_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as server:
        host = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(pyterrane.TerraneError) as caught:
            pyterrane.open(f"http://user:hidden@{host}/dem.trn?Signature=hidden", remote_timeout=0.5)
    message = str(caught.value)
    assert f"http://{host}/dem.trn cannot be read: it did not answer within 0.5 s" in message
    assert "hidden" not in message and "remote_timeout" in message
    with pytest.raises(ValueError, match="`remote_timeout` must be a number of seconds above 0"):
        pyterrane.open("dem.trn", remote_timeout=0)


def test_a_mosaic_is_a_list_of_rasters(tmp_path):
    from conftest import write

    whole = hills(120, 200)
    west = write(tmp_path, "west.tif", whole[:, :90])
    east = write(tmp_path, "east.tif", whole[:, 90:], transform=(1, 0, 2_600_090, 0, -1, 1_200_000))
    pyterrane.encode([west, east], tmp_path / "both.trn", lossless=True)
    np.testing.assert_array_equal(pyterrane.open(tmp_path / "both.trn").read(), whole)


def test_mistakes_are_one_sentence(dem, trn, tmp_path):
    out = tmp_path / "a.trn"
    with pytest.raises(FileNotFoundError, match="none.trn cannot be opened"):
        pyterrane.open(tmp_path / "none.trn")
    with pytest.raises(pyterrane.TerraneError, match="not a terrane file"):
        pyterrane.open(dem)
    with pytest.raises(FileExistsError, match="use `overwrite` to replace it"):
        pyterrane.encode(dem, trn)
    with pytest.raises(ValueError, match="`max_error` must be above 0, not 0"):
        pyterrane.encode(dem, out, max_error=0)
    with pytest.raises(ValueError, match="give one of `max_error`, `rmse`, `bpp` and `lossless`"):
        pyterrane.encode(dem, out, max_error=1, lossless=True)
    with pytest.raises(ValueError, match="there is no method \"zip\"; methods are .*context"):
        pyterrane.encode(dem, out, method="zip")
    with pytest.raises(ValueError, match="leave out `bits` and `fixed_width`"):
        pyterrane.encode(dem, out, method="integers", bits=8)
    with pytest.raises(ValueError, match="there is no profile \"slow\"; profiles are .*standard"):
        pyterrane.encode(dem, out, profile="slow")
    with pytest.raises(ValueError, match="`effort` must be from 0 to 3, not 4"):
        pyterrane.encode(dem, out, effort=4)
    with pytest.raises(ValueError, match="`bits` must be one of .*16.*, not 3"):
        pyterrane.encode(dem, out, bits=3)
    with pytest.raises(TypeError, match="quality"):
        pyterrane.encode(dem, out, quality=3)
    with pytest.raises(ValueError, match="`crs`: EPSG:1 is not known"):
        pyterrane.encode(hills(20, 20), out, crs=1)
    with pytest.raises(ValueError, match="two axes"):
        pyterrane.encode(np.zeros(5), out)
    with pytest.raises(IndexError, match="there is no level 9"):
        pyterrane.open(trn).read(level=9)
    with pytest.raises(pyterrane.TerraneError, match="outside the raster"):
        pyterrane.open(trn).read(bbox=(0, 0, 1, 1))
    with pytest.raises(MemoryError, match="so large an array would take .* raise it with `memory_limit`"):
        pyterrane.open(trn).read(resolution=1e-3)
    data = bytearray(open(trn, "rb").read())
    data[-300] ^= 4
    (tmp_path / "bad.trn").write_bytes(data)
    report = pyterrane.verify(tmp_path / "bad.trn")
    assert not report["holds"] and report["damaged"][0]["tiles"] > 0 and "damaged" in report["failures"][0]
    with pytest.raises(pyterrane.TerraneError, match="damaged"):
        pyterrane.open(tmp_path / "bad.trn").read()
    assert not out.exists()


def test_a_damaged_file_is_repaired(dem, trn, tmp_path):
    whole = open(trn, "rb").read()
    bad, out = tmp_path / "bad.trn", tmp_path / "good.trn"
    data = bytearray(whole)
    data[-300] ^= 4
    bad.write_bytes(data)
    report = pyterrane.repair(bad, dem, out)
    assert report["records"] + report["pages"] > 0 and not report["was_whole"]
    assert out.read_bytes() == whole and bad.read_bytes() == data
    pyterrane.repair(bad, [dem])
    assert bad.read_bytes() == whole
    assert pyterrane.repair(bad, dem)["was_whole"]
    with pytest.raises(FileExistsError):
        pyterrane.repair(bad, dem, out)


def test_time_is_limited(trn):
    terrain = pyterrane.open(trn)
    terrain.limit_time(0)
    with pytest.raises(pyterrane.TerraneError, match="longer than"):
        terrain.read()
    terrain.limit_time(None)
    assert terrain.read().shape == terrain.shape
    with pytest.raises(ValueError, match="seconds"):
        terrain.limit_time(-1)


def test_parts_are_the_whole_file(trn):
    terrain = pyterrane.open(trn)
    parts = terrain.parts()
    records = sum(level["bytes"] for level in parts["levels"])
    assert parts["head"] + parts["index"] + parts["model"] + records == parts["bytes"] == os.path.getsize(trn)
    assert len(terrain.info["overviews"]) == len(terrain.levels) - 1


def test_an_encoding_is_stopped_from_python(dem, tmp_path):
    seen = []

    def stop(done, of):
        seen.append((done, of))
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        pyterrane.encode(dem, tmp_path / "a.trn", tile=16, progress=stop)
    assert len(seen) == 1 and 0 < seen[0][0] < seen[0][1]
    assert os.listdir(tmp_path) == []


def test_other_threads_run_while_a_raster_is_encoded(tmp_path):
    """Python's lock is released: another thread goes on while one encodes."""
    heights = hills(1200, 1200)
    ticks, done = 0, threading.Event()

    def encode():
        pyterrane.encode(heights, tmp_path / "a.trn", max_error=0.01, jobs=1)
        done.set()

    worker = threading.Thread(target=encode)
    worker.start()
    while not done.wait(0.005):
        ticks += 1
    worker.join()
    assert ticks > 20


def test_an_output_is_never_an_input(dem, tmp_path):
    """Nor by another name, nor where its ending says that it is something else."""
    source = tmp_path / "dem.tif"
    source.write_bytes(open(dem, "rb").read())
    before = source.read_bytes()
    out = tmp_path / "dem.trn"
    pyterrane.encode(source, out)
    with pytest.raises(ValueError, match="is the input"):
        pyterrane.encode(source, source, overwrite=True, any_extension=True)
    with pytest.raises(ValueError, match="ending of a GeoTIFF"):
        pyterrane.encode(source, tmp_path / "other.tif")
    with pytest.raises(ValueError, match="is the input"):
        pyterrane.decode(out, out, overwrite=True, any_extension=True)
    assert source.read_bytes() == before
