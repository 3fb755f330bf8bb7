"""Registering with GDAL; that files open then is tested by `just test-gdal-plugin`."""

import importlib

import pytest

from pyterrane import gdal


def test_without_a_plugin_the_version_is_named(tmp_path, monkeypatch):
    rasterio = pytest.importorskip("rasterio")
    minor = ".".join(rasterio.__gdal_version__.split(".")[:2])
    assert gdal.gdal_version() == rasterio.__gdal_version__
    monkeypatch.setenv("GDAL_DRIVER_PATH", str(tmp_path))
    for plugin in (None, tmp_path, tmp_path / "gdal_TRN.so"):
        with pytest.raises(gdal.NoPluginError, match=f"needs a plugin built for GDAL {minor}"):
            gdal.register(plugin)


def test_a_file_that_is_no_plugin_is_refused(tmp_path):
    pytest.importorskip("rasterio")
    (tmp_path / "gdal_TRN.so").write_bytes(b"no library")
    with pytest.raises(gdal.NoPluginError, match="is not one"):
        gdal.register(tmp_path / "gdal_TRN.so")


def test_without_gdal_there_is_nothing_to_register_with(monkeypatch):
    def absent(name, *_):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(gdal.NoPluginError, match="neither rasterio nor osgeo"):
        gdal.gdal_version()
