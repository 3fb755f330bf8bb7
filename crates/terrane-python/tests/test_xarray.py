"""Neural terrain files as datasets: the numbers of the decoded COG."""

import pickle

import dask
import numpy as np
import pytest
import rioxarray
import xarray as xr

import pyterrane


@pytest.fixture(scope="module")
def cog(trn, tmp_path_factory):
    path = tmp_path_factory.mktemp("cog") / "decoded.tif"
    pyterrane.decode(trn, path)
    return rioxarray.open_rasterio(path, masked=True).squeeze("band", drop=True)


def test_a_dataset_is_the_decoded_cog(trn, cog):
    heights = xr.open_dataset(trn, engine="terrane").height
    np.testing.assert_array_equal(heights, cog)
    np.testing.assert_array_equal(heights.x, cog.x)
    np.testing.assert_array_equal(heights.y, cog.y)
    assert heights.dtype == cog.dtype == np.float32
    assert heights.rio.crs == cog.rio.crs
    assert heights.rio.transform() == cog.rio.transform()
    assert heights.rio.bounds() == cog.rio.bounds()
    assert np.isnan(heights.rio.nodata) and heights.attrs["units"] == "m"
    assert xr.open_dataset(trn).height.equals(heights), "the engine is found by the ending"


def test_reprojecting_selecting_and_reducing_give_the_numbers_of_the_cog(trn, cog):
    lazy = xr.open_dataset(trn, engine="terrane", chunks={}).height
    assert lazy.chunks == ((64, 64, 64, 64, 24), (64, 64, 64, 64, 44))
    for system in ("EPSG:4326", "EPSG:3857"):
        ours, theirs = lazy.rio.reproject(system), cog.rio.reproject(system)
        np.testing.assert_array_equal(ours, theirs)
        assert ours.rio.transform() == theirs.rio.transform()
    np.testing.assert_array_equal(
        lazy.sel(x=slice(2_600_050, 2_600_130), y=slice(1_199_950, 1_199_800)),
        cog.sel(x=slice(2_600_050, 2_600_130), y=slice(1_199_950, 1_199_800)),
    )
    points = {"x": xr.DataArray([2_600_003.2, 2_600_290.1, 2_600_150.0], dims="point"),
              "y": xr.DataArray([1_199_999.0, 1_199_725.9, 1_199_860.4], dims="point")}
    np.testing.assert_array_equal(lazy.sel(points, method="nearest"), cog.sel(points, method="nearest"))
    for reduction in ("max", "min", "count"):
        assert getattr(lazy, reduction)().compute() == getattr(cog, reduction)()
    with dask.config.set(scheduler="threads"):
        mean = lazy.astype(float).mean().compute()
    np.testing.assert_allclose(mean, cog.astype(float).mean(), rtol=1e-12)
    np.testing.assert_array_equal(lazy.coarsen(y=10, x=10).max(), cog.coarsen(y=10, x=10).max())


def test_every_kind_of_index_is_numpys(trn, cog):
    ours, array = xr.open_dataset(trn, engine="terrane").height, cog.values
    for rows, columns in [
        (slice(None), slice(None)),
        (slice(5, 270, 7), slice(250, 3, -4)),
        (slice(-20, None), slice(None, -90)),
        (17, slice(60, 70)),
        (-1, -1),
        (slice(0, 0), slice(3, 9)),
        ([3, 200, 7], slice(2, 9)),
        ([-1, 0], [5]),
        (np.array([], int), slice(None)),
    ]:
        picked = ours.isel(y=rows, x=columns)
        expected = array[rows] if np.ndim(rows) == 0 else array[rows, :]
        expected = expected[..., columns]
        np.testing.assert_array_equal(picked, expected, err_msg=f"{rows} {columns}")
    generator = np.random.default_rng(3)
    rows, columns = generator.integers(0, 280, (4, 50)), generator.integers(0, 300, (4, 50))
    there = ours.isel(y=xr.DataArray(rows, dims=("a", "b")), x=xr.DataArray(columns, dims=("a", "b")))
    np.testing.assert_array_equal(there, array[rows, columns])


def test_reading_is_lazy(trn, monkeypatch):
    read = []
    window = pyterrane.Terrain.window

    def counted(self, column, row, width, height, **options):
        read.append(width * height)
        return window(self, column, row, width, height, **options)

    monkeypatch.setattr(pyterrane.Terrain, "window", counted)
    heights = xr.open_dataset(trn, engine="terrane").height
    part = heights.isel(y=slice(10, 20)).isel(x=slice(100, 130))
    assert read == []
    part.load()
    assert read == [300]
    corners = xr.DataArray([0, -1], dims="corner")
    heights.isel(y=corners, x=corners).load()
    assert read[1:] == [1, 1], "points far apart are two pixels, not the raster"


def test_overviews_are_levels(trn):
    for level, shape in enumerate(pyterrane.open(trn).levels):
        heights = xr.open_dataset(trn, engine="terrane", level=level).height
        assert heights.shape == shape
        np.testing.assert_array_equal(heights, pyterrane.open(trn).read(level=level))
        assert heights.rio.bounds()[0] == 2_600_000 and heights.rio.bounds()[3] == 1_200_000
        assert heights.rio.resolution() == (2.0**level, -(2.0**level))
    with pytest.raises(IndexError, match="there is no level 4"):
        xr.open_dataset(trn, engine="terrane", level=4)


def test_datasets_go_to_other_processes(trn, cog):
    dataset = pickle.loads(pickle.dumps(xr.open_dataset(trn, engine="terrane")))
    np.testing.assert_array_equal(dataset.height, cog)
    lazy = xr.open_dataset(trn, engine="terrane", chunks={}).height
    with dask.config.set(scheduler="processes", num_workers=2):
        assert lazy.max().compute() == cog.max()


def test_rotated_and_unplaced_rasters_have_no_coordinates_of_axes(tmp_path):
    heights = np.arange(600.0).reshape(20, 30)
    rotated = (0.8, 0.6, 2_600_000, 0.6, -0.8, 1_200_000)
    pyterrane.encode(heights, tmp_path / "a.trn", transform=rotated, crs=2056)
    dataset = xr.open_dataset(tmp_path / "a.trn", engine="terrane")
    assert "x" not in dataset.coords
    assert tuple(dataset.rio.transform())[:6] == pytest.approx(rotated)
    pyterrane.encode(heights, tmp_path / "b.trn")
    plain = xr.open_dataset(tmp_path / "b.trn", engine="terrane", drop_variables="spatial_ref")
    assert plain.height.shape == (20, 30) and "spatial_ref" not in plain.coords


def test_an_array_of_xarray_is_encoded_with_its_place(cog, tmp_path):
    pyterrane.encode(cog, tmp_path / "again.trn", lossless=True)
    again = xr.open_dataset(tmp_path / "again.trn", engine="terrane").height
    np.testing.assert_array_equal(again, cog)
    assert again.rio.transform() == cog.rio.transform() and again.rio.crs == cog.rio.crs


def test_the_bound_and_what_was_measured_have_names_of_their_own(trn):
    terrain = pyterrane.open(trn)
    attributes = xr.open_dataset(trn, engine="terrane").height.attrs
    assert attributes["bound_m"] == terrain.bound_m == 0.1
    assert attributes["max_error_m"] == terrain.max_error_m < 0.1
    assert "bound_m" not in xr.open_dataset(trn, engine="terrane", level=1).height.attrs


def test_integers_are_integers_where_they_are_not_masked(tmp_path):
    numbers = np.arange(90 * 70).reshape(90, 70).astype("int16")
    out = tmp_path / "numbers.trn"
    pyterrane.encode(numbers, out, lossless=True, nodata=5, tile=64)
    masked = xr.open_dataset(out, engine="terrane").height
    assert masked.dtype == np.float32 and int(np.isnan(masked).sum()) == 1
    raw = xr.open_dataset(out, engine="terrane", mask_and_scale=False).height
    assert raw.dtype == np.int16 and raw.attrs["_FillValue"] == 5 and raw.rio.nodata == 5
    np.testing.assert_array_equal(raw, numbers)
    np.testing.assert_array_equal(raw[70, 3:9], numbers[70, 3:9])
    # And back.
    pyterrane.encode(raw, tmp_path / "again.trn", lossless=True)
    np.testing.assert_array_equal(pyterrane.open(tmp_path / "again.trn").read(), pyterrane.open(out).read())
