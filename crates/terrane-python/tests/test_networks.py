"""Files of tokens, which need a package that was built with networks."""

from pathlib import Path

import numpy as np
import pytest

import pyterrane
from conftest import hills

GOLDEN = sorted((Path(__file__).parents[3] / "conformance").glob("tokens-*"))

with_networks = pytest.mark.skipif(
    not pyterrane.has_networks, reason="pyterrane was built without the feature `networks`"
)
without_networks = pytest.mark.skipif(
    pyterrane.has_networks, reason="pyterrane was built with the feature `networks`"
)


@without_networks
def test_tokens_need_another_build(dem, tmp_path):
    """Which a sentence says, whether a file is opened or made; its description needs no model."""
    assert GOLDEN
    for folder in GOLDEN:
        with pytest.raises(pyterrane.TerraneError, match="tokens of .*build with the feature `networks` to read it"):
            pyterrane.open(folder / "input.trn")
        assert pyterrane.info(folder / "input.trn")["width"] > 0
    for settings in ({"method": "huvr-siren"}, {"bits": 8}):
        with pytest.raises(pyterrane.TerraneError, match="has no networks: build with the feature `networks`"):
            pyterrane.encode(dem, tmp_path / "x.trn", **settings)
    assert not (tmp_path / "x.trn").exists()


@with_networks
@pytest.mark.parametrize("folder", GOLDEN, ids=lambda folder: folder.name)
def test_golden_files_of_tokens_are_read(folder):
    heights = pyterrane.open(folder / "input.trn").read(dtype="float64")
    expected = np.fromfile(folder / "heights.f64", "<f8").reshape(heights.shape)
    assert (np.isnan(heights) == np.isnan(expected)).all()
    assert np.nanmax(np.abs(heights - expected)) <= 0.001


@with_networks
def test_tokens_come_back_within_their_bound(tmp_path):
    heights = hills(300, 270)
    report = pyterrane.encode(heights, tmp_path / "x.trn", method="huvr-siren", max_error=0.5)
    terrain = pyterrane.open(tmp_path / "x.trn")
    assert terrain.method == "huvr-siren" and report.max_error_m <= 0.5
    assert np.nanmax(np.abs(terrain.read() - heights)) <= 0.5
