"""Arrays to files and back: types, gaps, memory."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import pyterrane
from conftest import hills


@pytest.mark.parametrize("kind", ["float32", "float64", "int16", "uint8", "int64"])
def test_arrays_come_back_as_they_were(kind, tmp_path):
    heights = hills(90, 110)
    gaps = np.isnan(heights)
    out = tmp_path / "a.trn"
    if kind.startswith("float"):
        array, nodata = heights.astype(kind), None
    else:
        array, nodata = np.where(gaps, 255, np.nan_to_num(heights) / 3).astype(kind), 255
    pyterrane.encode(array, out, lossless=True, nodata=nodata)
    back = pyterrane.open(out).read()
    assert (np.isnan(back) == gaps).all()
    np.testing.assert_array_equal(back[~gaps], array[~gaps])
    masked = np.ma.masked_array(np.where(gaps, 0, array), gaps)
    report = pyterrane.encode(masked, out, max_error=0.3, overwrite=True)
    assert report.pixels == (~gaps).sum() and report.max_error_m <= 0.3
    assert report.bpp == pytest.approx(os.path.getsize(out) * 8 / report.pixels)
    assert (np.isnan(pyterrane.open(out).read()) == gaps).all()


def layouts(heights):
    """The same heights in other layouts of memory, of which the last two cannot be read in place."""
    rows, columns = heights.shape
    wide = np.zeros((2 * rows, 3 * columns), heights.dtype)
    wide[::2, ::3] = heights
    odd = np.zeros(heights.nbytes + 1, "uint8")[1:].view(heights.dtype).reshape(heights.shape)
    odd[:] = heights
    locked = heights.copy()
    locked.flags.writeable = False
    return {
        "transposed": np.ascontiguousarray(heights.T).T,
        "reversed": heights[::-1, ::-1].copy()[::-1, ::-1],
        "strided": wide[::2, ::3],
        "locked": locked,
        "unaligned": odd,
        "swapped": heights.astype(heights.dtype.newbyteorder()),
    }


@pytest.mark.parametrize("kind", ["float32", "float64", "int16"])
def test_every_layout_in_memory_gives_the_same_file(kind, tmp_path):
    heights = np.nan_to_num(hills(150, 210)).astype(kind)
    pyterrane.encode(heights, tmp_path / "plain.trn", max_error=0.05, tile=64)
    expected = (tmp_path / "plain.trn").read_bytes()
    for name, array in layouts(heights).items():
        pyterrane.encode(array, tmp_path / f"{name}.trn", max_error=0.05, tile=64)
        assert (tmp_path / f"{name}.trn").read_bytes() == expected, name


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_gaps_are_the_same_however_they_are_given(kind, tmp_path):
    """NaN and a mask give one file; a nodata value is in its head, and gives the same heights."""
    heights = hills(90, 110).astype(kind)
    gaps = np.isnan(heights)
    filled = np.where(gaps, -9999, heights).astype(kind)
    pyterrane.encode(heights, tmp_path / "nan.trn", lossless=True)
    pyterrane.encode(np.ma.masked_array(filled, gaps), tmp_path / "mask.trn", lossless=True)
    assert (tmp_path / "nan.trn").read_bytes() == (tmp_path / "mask.trn").read_bytes()
    pyterrane.encode(filled, tmp_path / "value.trn", lossless=True, nodata=-9999)
    terrain = pyterrane.open(tmp_path / "value.trn")
    assert terrain.nodata == -9999
    np.testing.assert_array_equal(terrain.read(), heights)


def test_heights_come_back_in_the_type_of_their_source(tmp_path):
    for kind in ("float32", "float64"):
        out = tmp_path / f"{kind}.trn"
        pyterrane.encode(hills(150, 210).astype(kind), out, max_error=0.05, tile=64)
        terrain = pyterrane.open(out)
        narrow, wide = terrain.read(dtype=np.float32), terrain.read(dtype="float64")
        assert narrow.dtype == np.float32 and wide.dtype == np.float64
        np.testing.assert_array_equal(narrow, wide.astype("float32"))
        own = terrain.read()
        assert own.dtype == terrain.dtype == kind and own.flags.c_contiguous and own.flags.writeable
        np.testing.assert_array_equal(own, wide.astype(kind))
        for part in ({"resolution": 0.4}, {"resolution": 3.7}, {"level": 1}):
            assert terrain.read(**part).dtype == kind and terrain.read(**part, dtype="f4").dtype == np.float32
        assert terrain.window(0, 0, 3, 2).dtype == kind
        assert terrain.window(0, 0, 3, 2, dtype="f8").dtype == np.float64
        with pytest.raises(ValueError, match="`dtype` must be float32 or float64, not int16"):
            terrain.read(dtype="int16")


def test_a_part_is_that_part_of_the_whole(trn):
    """However many tiles it touches, and whatever strips it is read in."""
    for jobs in (1, 2, 7):
        terrain = pyterrane.open(trn, jobs=jobs)
        whole = terrain.read()
        for column, row, width, height in [(0, 0, 300, 280), (3, 5, 20, 270), (63, 64, 65, 129), (250, 1, 50, 3)]:
            window = terrain.window(column, row, width, height)
            np.testing.assert_array_equal(window, whole[row : row + height, column : column + width])
        x, y = terrain.bounds[0], terrain.bounds[3]
        fine = terrain.read(bbox=(x, y - 280, x + 70, y), resolution=0.7)
        np.testing.assert_array_equal(fine, terrain.read(resolution=0.7)[:, :100])
        coarse = terrain.read(bbox=(x, y - 55, x + 300, y), resolution=5.5)
        np.testing.assert_array_equal(coarse, terrain.read(resolution=5.5)[:10])


def test_what_is_no_height_is_said(tmp_path):
    """Infinity and 1e30 are stored as no data, with a warning that counts them."""
    heights = np.full((40, 50), 3.0)
    heights[1, 2], heights[3, 4] = np.inf, 1e31
    with pytest.warns(UserWarning, match="2 pixels hold infinity"):
        report = pyterrane.encode(heights, tmp_path / "x.trn")
    assert report.not_heights == 2 and report.pixels == 1998


#: Prints by how many bytes the peak of memory is higher after each of two calls.
MEASURE = """
import sys
import numpy as np
import pyterrane

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))

path = sys.argv[1]
row, column = np.ogrid[0:2500, 0:2000]
heights = np.multiply(np.sin(row / 30), 40 * np.cos(column / 20), dtype="float32")
before = peak()
pyterrane.encode(heights, path, max_error=0.1, profile="fast", effort=0, tile=64, jobs=1)
encoded = peak()
heights = pyterrane.open(path, jobs=1).read()
print(encoded - before, peak() - encoded, heights.nbytes)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="only Linux says how much memory was taken at most")
def test_an_array_is_neither_copied_to_be_encoded_nor_to_be_returned(tmp_path):
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "x.trn")]
    outcome = subprocess.run(command, capture_output=True, text=True, check=True)
    encoding, reading, array = map(int, outcome.stdout.split())
    assert encoding < 0.9 * array, "what is taken beside the array is less than another one"
    # The first array is let go of when the second is there.
    assert reading < 1.3 * array


def test_another_thread_may_write_to_an_array_that_is_encoded(tmp_path):
    """What is read is a copy that NumPy makes: every height of the file is one that was in the array."""
    heights = np.full((2300, 700), 100.0)
    done = threading.Event()

    def write():
        flip = 100.0
        while not done.is_set():
            flip = 300.0 - flip
            heights[:] = flip

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for method in ("integers", "context"):
            pyterrane.encode(heights, tmp_path / "a.trn", lossless=True, method=method, overwrite=True)
            assert set(np.unique(pyterrane.open(tmp_path / "a.trn").read())) <= {100.0, 200.0}
    finally:
        done.set()
        writer.join()


def test_integers_of_a_lossless_file_need_no_64_bits(tmp_path):
    numbers = np.arange(60 * 70).reshape(60, 70).astype("int16")
    out = tmp_path / "a.trn"
    pyterrane.encode(numbers, out, lossless=True, nodata=17)
    terrain = pyterrane.open(out)
    assert terrain.dtype == np.float32 and terrain.integers == (np.dtype("int16"), 17)
    heights = terrain.read()
    assert heights.dtype == np.float32 and np.isnan(heights[0, 17]) and np.isnan(heights).sum() == 1
    for found in (terrain.read(dtype="int16"), terrain.window(0, 0, 70, 60, dtype="int16")):
        assert found.dtype == np.int16
        np.testing.assert_array_equal(found, numbers)
    for wrong in ("int32", "uint8"):
        with pytest.raises(ValueError, match="int16, float32 or float64"):
            terrain.read(dtype=wrong)
    with pytest.raises(ValueError, match="full resolution"):
        terrain.read(dtype="int16", resolution=2.0)
    # 25 bits are no float of 32.
    pyterrane.encode(np.array([[0, (1 << 24) + 1]], "int32"), out, lossless=True, overwrite=True)
    wide = pyterrane.open(out)
    assert wide.dtype == np.float64 and wide.read()[0, 1] == (1 << 24) + 1
    pyterrane.encode(numbers, out, max_error=5, overwrite=True)
    assert pyterrane.open(out).max_error_m > 0 and pyterrane.open(out).integers is None


def test_a_terrain_is_an_array_and_a_table(trn):
    terrain = pyterrane.open(trn)
    heights = np.asarray(terrain)
    np.testing.assert_array_equal(heights, terrain.read())
    assert np.asarray(terrain, dtype="float64").dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        terrain.__array__(copy=False)
    shown = terrain._repr_html_()
    assert shown.startswith("<table>") and "300 × 280" in shown and "0.1 m" in shown and "EPSG:2056+5728" in shown
    terrain.close()
    assert "closed" in terrain._repr_html_()


def test_numbers_that_no_setting_has_are_refused_by_name(trn, tmp_path):
    heights, out = hills(40, 40), tmp_path / "a.trn"
    terrain = pyterrane.open(trn)
    for call, reason in (
        (lambda: pyterrane.encode(heights, out, crs="EPSG:99999"), "EPSG:99999 is not known"),
        (lambda: pyterrane.encode(heights, out, crs=-3), "EPSG:-3 is not known"),
        (lambda: pyterrane.encode(heights, out, effort=-1), "`effort` must be"),
        (lambda: pyterrane.encode(heights, out, tile=70_000), "`tile` must be"),
        (lambda: pyterrane.encode(heights, out, jobs=-1), "`jobs` must be"),
        (lambda: pyterrane.open(trn, jobs=-1), "`jobs` must be"),
        (lambda: terrain.window(-1, 0, 10, 10), "inside the raster"),
        (lambda: terrain.window(0, 0, 1 << 70, 10), "inside the raster"),
        (lambda: terrain.contours(10, index=-1), "`index` must be"),
    ):
        with pytest.raises(ValueError, match=reason):
            call()
    for call in (lambda: terrain.read(level=-1), lambda: terrain.window(0, 0, 1, 1, level=300), lambda: terrain.level_transform(-1)):
        with pytest.raises(IndexError, match="no level"):
            call()
    assert not out.exists()


def test_progress_is_told_after_every_tree(tmp_path):
    told = []
    pyterrane.encode(hills(200, 600), tmp_path / "a.trn", tile=16, progress=lambda done, of: told.append((done, of)))
    # Trees of 128 pixels: five across, two down, and those above.
    assert len(told) >= 10 and told == sorted(set(told)) and told[-1][0] == told[-1][1]
