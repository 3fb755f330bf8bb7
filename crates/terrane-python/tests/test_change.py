"""Changes that are known, between files that were made for them."""

import numpy as np
import pytest

import pyterrane
from conftest import CRS, TRANSFORM, hills


@pytest.fixture(scope="module")
def ground() -> np.ndarray:
    return hills(220, 260)


@pytest.fixture(scope="module")
def built(ground) -> np.ndarray:
    y, x = np.mgrid[0 : ground.shape[0], 0 : ground.shape[1]].astype(float)
    heap = 4 * np.maximum(1 - ((x - 60) ** 2 + (y - 150) ** 2) / 20**2, 0)
    pit = 3 * np.maximum(1 - ((x - 200) ** 2 + (y - 160) ** 2) / 15**2, 0)
    return (ground + heap - pit).astype("float32")


def write(folder, name: str, heights: np.ndarray, **options) -> str:
    path = str(folder / name)
    place = {"transform": TRANSFORM, "crs": CRS, "tile": 64}
    pyterrane.encode(heights, path, **{**place, **options})
    return path


def test_proven_change_is_true_change(ground, built, tmp_path):
    old = write(tmp_path, "old.trn", ground, max_error=0.1)
    new = write(tmp_path, "new.trn", built, max_error=0.1)
    change = pyterrane.diff(new, pyterrane.open(old))
    truth = built.astype(float) - ground.astype(float)
    assert change.bound_m == 0.2
    assert change.transform == TRANSFORM
    assert (np.isnan(change.difference) == np.isnan(truth)).all()
    assert np.nanmax(np.abs(change.difference - truth)) <= change.report["stored_bound_m"]
    assert change.proven is not None and change.proven.sum() > 1000
    assert (truth[change.proven] != 0).all()
    assert change.proven[np.nan_to_num(np.abs(truth)) > 0.4 + 1e-6].all()
    report = change.report
    assert report["changed_pixels"] == change.proven.sum()
    for name, sign in (("fill", 1), ("cut", -1)):
        of_proven = np.maximum(sign * truth[change.proven], 0).sum()
        assert abs(of_proven - report[f"{name}_m3"]) <= report[f"{name}_bound_m3"]
        of_all = np.nansum(np.maximum(sign * truth, 0))
        assert report[f"all_{name}_low_m3"] <= of_all <= report[f"all_{name}_high_m3"]


def test_without_a_bound_nothing_is_proven(ground, built, tmp_path):
    old = write(tmp_path, "old.trn", ground, max_error=0.1)
    new = write(tmp_path, "new.trn", built, rmse=0.1)
    change = pyterrane.diff(new, old)
    assert change.proven is None and change.bound_m is None
    assert "`max_error`" in change.report["unproven"]
    coarse = pyterrane.diff(new, old, resolution=4)
    assert coarse.difference.shape == (55, 65) and coarse.transform[0] == 4


def test_what_cannot_be_compared_is_said(ground, tmp_path):
    old = write(tmp_path, "old.trn", ground, max_error=0.1)
    other = write(tmp_path, "other.trn", ground, max_error=0.1, crs="EPSG:2056+5773")
    with pytest.raises(pyterrane.TerraneError, match="EPSG:5773"):
        pyterrane.diff(other, old)
    silent = write(tmp_path, "silent.trn", ground, max_error=0.1, crs="EPSG:2056")
    with pytest.warns(UserWarning, match="EPSG:5728"):
        pyterrane.diff(silent, old)
    with pytest.raises(ValueError, match="`resolution`"):
        pyterrane.diff(old, old, resolution=1.5)
