"""DataArrays of xarray: what their dimensions and coordinates mean."""

import subprocess
import sys

import numpy as np
import pytest

import pyterrane
from conftest import hills

xr = pytest.importorskip("xarray")
pyproj = pytest.importorskip("pyproj")


def lon_lat(rows: int = 40, columns: int = 60, **renamed) -> "xr.DataArray":
    """Hills at 7 to 7.5° E and 46 to 46.3° N, from the north."""
    heights = hills(200, 200)[:rows, :columns]
    lon, lat = 7.0 + (np.arange(columns) + 0.5) / 120, 46.4 - (np.arange(rows) + 0.5) / 120
    array = xr.DataArray(heights, dims=("lat", "lon"), coords={"lat": lat, "lon": lon})
    return array.rename(renamed) if renamed else array


def with_system(array, code: int = 4326):
    """As CF states a system, without rioxarray."""
    variable = xr.Variable((), 0, {"crs_wkt": pyproj.CRS.from_epsg(code).to_wkt()})
    array = array.assign_coords(spatial_ref=variable)
    array.attrs["grid_mapping"] = "spatial_ref"
    return array


EXPECTED = (1 / 120, 0.0, 7.0, 0.0, -1 / 120, 46.4)


def encoded(array, folder, **options) -> pyterrane.Terrain:
    out = folder / "placed.trn"
    pyterrane.encode(array, out, lossless=True, overwrite=True, **options)
    return pyterrane.open(out)


@pytest.mark.parametrize(
    "names",
    [{}, {"lon": "longitude", "lat": "latitude"}, {"lon": "x", "lat": "y"}, {"lon": "Easting", "lat": "Northing"}],
)
def test_names_say_which_runs_across(names, tmp_path):
    array = with_system(lon_lat(**names))
    for turned in (array, array.transpose()):
        terrain = encoded(turned, tmp_path)
        assert terrain.transform == pytest.approx(EXPECTED, abs=1e-12) and terrain.crs == "EPSG:4326"
        np.testing.assert_array_equal(terrain.read(), array.values)


@pytest.mark.parametrize("attribute", ["axis", "standard_name", "units"])
def test_attributes_of_cf_say_it_too(attribute, tmp_path):
    meanings = {"axis": "XY", "standard_name": ("longitude", "latitude"), "units": ("degrees_east", "degrees_north")}
    array = lon_lat(lon="a", lat="b").transpose()
    for name, value in zip("ab", meanings[attribute]):
        array.coords[name].attrs[attribute] = value
    terrain = encoded(array, tmp_path, crs=4326)
    assert terrain.transform == pytest.approx(EXPECTED, abs=1e-12)
    np.testing.assert_array_equal(terrain.read(), array.transpose("b", "a").values)


def test_rows_may_run_to_the_north_and_coordinates_be_rounded(tmp_path):
    array = lon_lat().isel(lat=slice(None, None, -1))
    terrain = encoded(array, tmp_path)
    south_up = (1 / 120, 0.0, 7.0, 0.0, 1 / 120, 46.4 - 40 / 120)
    assert terrain.transform == pytest.approx(south_up, abs=1e-12)
    np.testing.assert_array_equal(terrain.read(), array.values)
    narrow = lon_lat().assign_coords(lon=lon_lat().lon.astype("float32"), lat=lon_lat().lat.astype("float32"))
    assert encoded(narrow, tmp_path).transform == pytest.approx(EXPECTED, abs=1e-5)
    # Kilometres of a projected grid.
    far = lon_lat(lon="x", lat="y").assign_coords(x=2600 + np.arange(60) * 0.5, y=1200 - np.arange(40) * 0.5)
    far.coords["x"].attrs["units"] = far.coords["y"].attrs["units"] = "km"
    assert encoded(far, tmp_path, crs=2056).transform == (500.0, 0.0, 2_599_750.0, 0.0, -500.0, 1_200_250.0)


def test_a_band_and_rows_and_columns_are_taken_as_they_are(tmp_path):
    array = with_system(lon_lat()).expand_dims(band=[1])
    assert encoded(array, tmp_path).transform == pytest.approx(EXPECTED, abs=1e-12)
    plain = xr.DataArray(hills(30, 20))
    terrain = encoded(plain, tmp_path)
    assert terrain.transform == (1.0, 0.0, 0.0, 0.0, 1.0, 0.0) and terrain.crs is None
    np.testing.assert_array_equal(terrain.read(), plain.values)
    placed = encoded(plain, tmp_path, transform=(2, 0, 10, 0, -2, 20), crs=2056)
    assert placed.transform == (2.0, 0.0, 10.0, 0.0, -2.0, 20.0)
    # One row has the size of a pixel from the transform that GDAL states.
    row = with_system(lon_lat()).isel(lat=slice(0, 1))
    row.spatial_ref.attrs["GeoTransform"] = "7 0.008333333333333333 0 46.4 0 -0.008333333333333333"
    assert encoded(row, tmp_path).transform == pytest.approx(EXPECTED, abs=1e-12)
    # The transform of the whole is not that of a part.
    part = with_system(lon_lat())
    part.spatial_ref.attrs["GeoTransform"] = row.spatial_ref.attrs["GeoTransform"]
    moved = encoded(part.isel(lon=slice(6, None)), tmp_path).transform
    assert moved == pytest.approx((1 / 120, 0.0, 7.05, 0.0, -1 / 120, 46.4), abs=1e-12)


def uneven():
    array = lon_lat()
    lon = array.lon.values.copy()
    lon[30] += 0.2 / 120
    return array.assign_coords(lon=lon)


def attributes(**values):
    array = lon_lat()
    array.attrs.update(values)
    return array


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (uneven, "'lon' are not evenly spaced: number 30"),
        (lambda: lon_lat(lon="a", lat="b"), "do not say which runs across"),
        (lambda: lon_lat(lon="a"), "do not say which runs across"),
        (lambda: with_system(lon_lat()).drop_vars(["lon", "lat"]), "no coordinates along"),
        (lambda: lon_lat().drop_vars("lon"), "no coordinates along 'lon'"),
        (lambda: lon_lat().isel(lat=[0]), "one coordinate along 'lat'"),
        (lambda: lon_lat().expand_dims(time=[1, 2]), "has two dimensions"),
        (lambda: lon_lat().to_dataset(name="height"), "several variables"),
        (lambda: attributes(units="feet"), "in metres"),
        (lambda: attributes(scale_factor=0.1), "mask_and_scale=True"),
        (lambda: lon_lat().assign_coords(lon=np.zeros(60)), "not evenly spaced"),
        (lambda: lon_lat().assign_coords(lon=np.full(60, np.nan)), "have gaps"),
    ],
)
def test_what_is_not_a_regular_grid_in_metres_is_refused(array, reason, tmp_path):
    with pytest.raises(ValueError, match=reason):
        encoded(array(), tmp_path)
    assert not (tmp_path / "placed.trn").exists()


def test_it_does_not_matter_what_was_imported(tmp_path):
    """Without rioxarray an array lies where it lies with it, and with it where it lay before."""
    program = """
import sys
import pyterrane, pyterrane.xarray
if sys.argv[1] == "with":
    import rioxarray
# xarray itself imports every engine that it knows, and rioxarray with them.
array = pyterrane.xarray.TerraneBackend().open_dataset(sys.argv[2]).height.load()
assert ("rioxarray" in sys.modules) == (sys.argv[1] == "with")
report = pyterrane.encode(array, sys.argv[3], lossless=True, overwrite=True)
terrain = pyterrane.open(sys.argv[3])
print(terrain.transform, terrain.crs)
"""
    source = tmp_path / "source.trn"
    place = {"transform": (0.1, 0, 2_600_000.3, 0, -0.1, 1_200_000.7), "crs": "EPSG:2056"}
    pyterrane.encode(hills(50, 70), source, max_error=0.1, **place)
    said = set()
    for way in ("with", "without"):
        command = [sys.executable, "-c", program, way, source, tmp_path / "again.trn"]
        said.add(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    expected = pyterrane.open(source)
    assert said == {f"{expected.transform} {expected.crs}\n"}


def test_what_rioxarray_was_told_counts(tmp_path):
    pytest.importorskip("rioxarray")
    array = lon_lat(lon="a", lat="b").rio.set_spatial_dims("a", "b").rio.write_crs(4326).rio.write_nodata(7.0)
    array.values[3, 4] = 7.0
    terrain = encoded(array, tmp_path)
    assert terrain.crs == "EPSG:4326" and terrain.transform == pytest.approx(EXPECTED, abs=1e-12)
    assert np.isnan(terrain.read()[3, 4])
