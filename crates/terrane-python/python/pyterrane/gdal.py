"""terrane files in the GDAL of this process: rasterio's or osgeo's.

>>> import rasterio                                             # doctest: +SKIP
>>> import pyterrane.gdal
>>> pyterrane.gdal.register("gdalplugins")                      # doctest: +SKIP
'.../gdalplugins/3.10/gdal_TRN.so'
>>> rasterio.open("alps.trn").read(1)                           # doctest: +SKIP

A plugin belongs to one minor version of GDAL; ``docs/gdal.md`` says how one is built. Without a plugin, ``pyterrane.open``
and its xarray engine read the same files.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import re
import sys
from pathlib import Path

__all__ = ["NoPluginError", "gdal_version", "register"]

_NAME = "gdal_TRN.so"


class NoPluginError(RuntimeError):
    """There is no plugin for the GDAL of this process; the sentence names the version that one would need."""


def _loaded() -> tuple[str, str]:
    """The version of the GDAL that this process uses, and who brought it."""
    owners = {"rasterio": ("rasterio", "__gdal_version__"), "osgeo": ("osgeo.gdal", "__version__")}
    # What is imported already comes first.
    for owner, (module, version) in sorted(owners.items(), key=lambda item: item[1][0] not in sys.modules):
        try:
            return str(getattr(importlib.import_module(module), version)), owner
        except ImportError:
            continue
    raise NoPluginError("neither rasterio nor osgeo is installed, so that there is no GDAL to register with")


def gdal_version() -> str:
    """The version of the GDAL that this process uses, as ``3.10.3``: rasterio's, or else osgeo's."""
    return _loaded()[0]


def _library(owner: str) -> Path | None:
    """The file of the GDAL that is loaded; `None` where its symbols are those of the process."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    found = {line.split(maxsplit=5)[-1] for line in lines if re.search(r"/libgdal[^/]*\.so[^/]*$", line)}
    if len(found) > 1:
        # Both were imported: rasterio's wheel has its own, in a folder beside it.
        bundled = {path for path in found if "rasterio.libs" in path}
        found = bundled if owner == "rasterio" and bundled else found - bundled
    return Path(sorted(found)[0]) if found else None


def _candidates(plugin: str | os.PathLike[str] | None, minor: str) -> list[Path]:
    if plugin is not None:
        path = Path(plugin)
        return [path] if path.suffix == ".so" else [path / minor / _NAME, path / _NAME]
    folders = [Path(__file__).parent / "gdalplugins"]
    folders += [Path(folder) for folder in os.environ.get("GDAL_DRIVER_PATH", "").split(os.pathsep) if folder]
    return [path for folder in folders for path in (folder / minor / _NAME, folder / _NAME)]


def register(plugin: str | os.PathLike[str] | None = None) -> str:
    """Registers the driver ``TRN`` with the GDAL of rasterio (or osgeo) in this process; returns the plugin's path.

    ``plugin`` is the file ``gdal_TRN.so``, or a folder with one folder for every version of GDAL (``3.10/gdal_TRN.so``);
    without it, the package's own folder ``gdalplugins`` and those of ``GDAL_DRIVER_PATH`` are searched. Calling it again
    changes nothing. Raises :class:`NoPluginError` where no plugin fits, with the version that one would need.
    """
    version, owner = _loaded()
    minor = ".".join(version.split(".")[:2])
    candidates = _candidates(plugin, minor)
    found = next((path for path in candidates if path.is_file()), None)
    needed = f"{owner} has GDAL {version} and needs a plugin built for GDAL {minor}"
    if found is None:
        looked = ", ".join(str(path) for path in candidates) or "nowhere, since GDAL_DRIVER_PATH is not set"
        raise NoPluginError(f"{needed}; looked for {looked}")
    library = _library(owner)
    if library is not None:
        # Python loads extension modules with symbols of their own; the plugin needs to see GDAL's.
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL | getattr(os, "RTLD_NOLOAD", 0))
    try:
        function = ctypes.CDLL(str(found)).GDALRegister_TRN
    except (OSError, AttributeError) as error:
        raise NoPluginError(f"{needed}, and {found} is not one: {error}") from error
    function.restype = None
    function()
    if not _has_driver(library):
        raise NoPluginError(f"{needed}, and {found} was built for another version")
    return str(found)


def _has_driver(library: Path | None) -> bool:
    gdal = ctypes.CDLL(str(library) if library is not None else None)
    gdal.GDALGetDriverByName.restype = ctypes.c_void_p
    gdal.GDALGetDriverByName.argtypes = [ctypes.c_char_p]
    return bool(gdal.GDALGetDriverByName(b"TRN"))
