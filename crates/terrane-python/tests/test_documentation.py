"""Every example of the package and of its page runs."""

import doctest
import importlib
from pathlib import Path

import pytest

import pyterrane
from conftest import hills, write

MODULES = ["pyterrane", "pyterrane._terrain", "pyterrane._convert", "pyterrane._opener", "pyterrane.xarray", "pyterrane.zarr",
           "pyterrane.shards", "pyterrane.ray", "pyterrane.dask"]
PAGES = ["docs/python.md", "docs/scale.md"]
OPTIONS = doctest.ELLIPSIS | doctest.FAIL_FAST
ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "dem.tif", hills(280, 300))
    pyterrane.encode("dem.tif", "dem.trn", max_error=0.1, tile=128)
    return tmp_path


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module(name, folder):
    outcome = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert outcome.attempted > 0 and outcome.failed == 0


@pytest.mark.parametrize("page", PAGES)
def test_examples_of_a_page(page, folder):
    outcome = doctest.testfile(str(ROOT / page), module_relative=False, optionflags=OPTIONS)
    assert outcome.attempted > 0 and outcome.failed == 0
