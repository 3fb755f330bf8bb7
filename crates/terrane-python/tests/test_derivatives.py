"""Slopes and the like: at points, as arrays and as rasters."""

import numpy as np
import pytest
import rasterio

import pyterrane
from conftest import hills

PRODUCTS = ["slope", "aspect", "hillshade", "laplacian", "profile-curvature", "plan-curvature", "tri", "tpi", "roughness"]
AT_POINTS = ["slope", "aspect", "laplacian", "profile-curvature", "plan-curvature"]


def test_points_in_web_mercator_have_the_slopes_of_the_command(tmp_path):
    """A unit of the map is fewer metres the farther north."""
    y, x = np.mgrid[0:300, 0:64]
    transform = (8000, 0, 1e6, 0, -8000, 12.5e6)
    pyterrane.encode(0.3 * x, tmp_path / "x.trn", max_error=0.001, transform=transform, crs=3857)
    terrain = pyterrane.open(tmp_path / "x.trn")
    for row in (20, 280):
        north = 12.5e6 - (row + 0.5) * 8000
        metres = 8000 / np.cosh(north / 6378137)
        expected = np.degrees(np.arctan(0.3 / metres))
        assert terrain.slope(1e6 + 32.5 * 8000, north) == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize("system, transform", [
    (2056, (1, 0, 2.6e6, 0, -1, 1.2e6)),
    (3857, (4, 0, 1e6, 0, -4, 6e6)),
    (4326, (1e-4, 0, 7, 0, -1e-4, 46)),
])
def test_a_product_at_every_pixel_is_that_of_the_points(system, transform, tmp_path):
    """In metres on the ground, in every coordinate reference system."""
    pyterrane.encode(hills(90, 110), tmp_path / "x.trn", max_error=0.01, tile=32, transform=transform, crs=system)
    terrain = pyterrane.open(tmp_path / "x.trn")
    x, y = terrain.xy(*np.mgrid[0:90, 0:110])
    for product in AT_POINTS:
        values = terrain.derive(product)
        at_points = getattr(terrain, product.replace("-", "_"))(x, y)
        np.testing.assert_array_equal(values, at_points.astype("float32"))
        assert np.isnan(values).any() and np.isfinite(values).any()


def test_arrays_and_rasters_of_products_are_the_same(trn, tmp_path):
    terrain = pyterrane.open(trn)
    for product in PRODUCTS:
        for mode in ("analytic", "grid"):
            out = tmp_path / f"{product}-{mode}.tif"
            assert pyterrane.derive(trn, out, product=product, mode=mode) == terrain.shape
            values = terrain.derive(product, mode)
            assert values.dtype == np.float32 and np.isfinite(values).any()
            with rasterio.open(out) as file:
                assert file.descriptions == (product,)
                np.testing.assert_array_equal(file.read(1, masked=True).filled(np.nan), values)
    with pytest.raises(FileExistsError, match="use `overwrite`"):
        pyterrane.derive(trn, out, product="slope")


def test_both_modes_have_the_slope_of_a_plane(tmp_path):
    row, column = np.mgrid[0:40, 0:50]
    heights = 0.3 * column + 0.4 * row
    pyterrane.encode(heights, tmp_path / "x.trn", lossless=True, transform=(2, 0, 2600000, 0, -2, 1200000), crs=2056)
    terrain = pyterrane.open(tmp_path / "x.trn")
    for mode in ("analytic", "grid"):
        slope, aspect = terrain.derive("slope", mode)[1:-1, 1:-1], terrain.derive("aspect", mode)[1:-1, 1:-1]
        np.testing.assert_allclose(slope, np.degrees(np.arctan(0.25)), rtol=1e-4)
        np.testing.assert_allclose(aspect, np.degrees(np.arctan2(-0.3, 0.4)) % 360, rtol=1e-4)


def test_contours_lie_on_the_surface_and_end_at_edges_alone(trn):
    terrain = pyterrane.open(trn)
    lines = terrain.contours(5)
    assert {line.height for line in lines} == set(np.arange(465, 541, 5.0)) & {line.height for line in lines}
    assert all(line.is_index == (line.height % 25 == 0) for line in lines)
    left, bottom, right, top = terrain.bounds
    for line in lines:
        x, y = line.points.T
        assert np.abs(terrain.height(x, y) - line.height).max() < 1e-3
        if not line.closed:
            for end in (line.points[0], line.points[-1]):
                is_edge = end[0] in (left, right) or end[1] in (bottom, top)
                around = [terrain.height(end[0] + dx, end[1] + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)]
                assert is_edge or np.isnan(around).any()
    assert sum(line.closed for line in lines) > 3
    box = (left + 20.3, bottom + 30.1, left + 60.7, bottom + 90.2)
    inside = np.concatenate([line.points for line in terrain.contours(5, bbox=box)])
    assert inside.min(axis=0) == pytest.approx(box[:2], abs=1e-6) and inside.max(axis=0) == pytest.approx(box[2:], abs=1e-6)
    assert len(terrain.contours(5, min_length=50)) < len(lines)
    with pytest.raises(ValueError, match="`interval` must be above 0"):
        terrain.contours(0)


def test_unknown_products_and_modes_are_named(trn, tmp_path):
    def derive(product, mode="analytic"):
        pyterrane.derive(trn, tmp_path / "x.tif", product=product, mode=mode)

    for function in (derive, pyterrane.open(trn).derive):
        with pytest.raises(ValueError, match="there is no product \"steepness\"; the products are slope, "):
            function("steepness")
        with pytest.raises(ValueError, match="there is no mode \"fast\"; modes are analytic and grid"):
            function("slope", "fast")
    assert not (tmp_path / "x.tif").exists()
