"""Terrane files for rasterio and whatever else reads a GeoTIFF from a Python file."""

from __future__ import annotations

import builtins
import io
import os
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from pyterrane._pyterrane import TerraneError, TiffBytes
from pyterrane._terrain import Path, is_address, location

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

#: What an address must end in: GDAL also asks for files beside a raster, such as ``dem.trn.aux.xml``.
_ENDING = ".trn"


class TiffFile(io.RawIOBase):
    """A terrane file as a cloud-optimised GeoTIFF that is nowhere: its bytes are made when they are read.

    >>> import pyterrane
    >>> with pyterrane.opener("dem.trn") as file:
    ...     file.read(4)
    b'II*\\x00'
    """

    def __init__(self, name: str, tiff: TiffBytes) -> None:
        super().__init__()
        self.name = name
        self._tiff = tiff
        self._at = 0

    @property
    def blocks_decoded(self) -> int:
        """How many blocks of the file were decoded."""
        return self._tiff.decoded()

    def _check(self) -> None:
        if self.closed:
            raise ValueError("the file is closed")

    def readable(self) -> bool:
        self._check()
        return True

    def seekable(self) -> bool:
        self._check()
        return True

    def tell(self) -> int:
        self._check()
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self._check()
        starts = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._tiff.length()}
        if whence not in starts:
            raise ValueError(f"`whence` must be 0, 1 or 2, not {whence}")
        at = starts[whence] + offset
        if at < 0:
            raise ValueError(f"there is no position {at}")
        self._at = at
        return at

    def read(self, size: int | None = -1, /) -> bytes:
        self._check()
        if size is None or size < 0:
            size = max(self._tiff.length() - self._at, 0)
        data = self._tiff.read(self._at, size)
        self._at += len(data)
        return data

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        with memoryview(buffer).cast("B") as view:
            data = self.read(len(view))
            view[: len(data)] = data
        return len(data)

    def __repr__(self) -> str:
        return f"<pyterrane.TiffFile {os.path.basename(self.name)!r}>"


def opener(
    path: Path,
    mode: str = "rb",
    *,
    model: Path | None = None,
    memory_limit: float | None = None,
    remote_timeout: float | None = None,
) -> IO[bytes] | TiffFile:
    """Opens a terrane file as a GeoTIFF, for ``rasterio.open(path, opener=pyterrane.opener)``; needs no plugin of GDAL.

    The GeoTIFF has the pixels, type, nodata value, coordinate reference system and description that ``decode`` writes, and
    the file's own overviews. A window decodes the tiles that it touches. ``path`` may be an address (https://…, s3://…) that
    ends in ``.trn``. Other files of this machine are opened as they are, since GDAL looks for files beside a raster.
    ``functools.partial(pyterrane.opener, model=…)`` gives options as those of :func:`pyterrane.open`.

    >>> import pyterrane, rasterio
    >>> with rasterio.open("dem.trn", opener=pyterrane.opener) as raster:
    ...     raster.shape, raster.overviews(1), raster.dtypes
    ((280, 300), [2, 4], ('float32',))
    """
    if mode not in ("r", "rb"):
        raise io.UnsupportedOperation(f"a terrane file is only read as a GeoTIFF, and the mode is {mode!r}")
    place = location(path)
    if is_address(place) and not urlsplit(place).path.endswith(_ENDING):
        raise FileNotFoundError(f"an address must end in {_ENDING}")
    try:
        tiff = TiffBytes(place, None if model is None else location(model), memory_limit, remote_timeout)
    except TerraneError:
        if is_address(place) or place.endswith(_ENDING):
            raise
        return builtins.open(place, "rb")
    return TiffFile(place, tiff)
