"""A codec for Zarr 3: chunks of heights as the tiles of a terrane file.

>>> import numpy as np, zarr
>>> from pyterrane.zarr import TerraneCodec
>>> y, x = np.mgrid[0:512, 0:768]
>>> hills = (500 + 20 * np.sin(x / 30) * np.cos(y / 20)).astype("float32")
>>> array = zarr.create_array("hills.zarr", shape=hills.shape, chunks=(256, 256), dtype="float32",
...                           serializer=TerraneCodec(max_error=0.05), compressors=None, fill_value=np.nan)
>>> array[:] = hills
>>> bool(np.abs(zarr.open_array("hills.zarr")[:] - hills).max() <= 0.05)
True
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from zarr.abc.codec import ArrayBytesCodec

from pyterrane._convert import heights_of
from pyterrane._pyterrane import Settings, TileCoder
from pyterrane._terrain import check_whole

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer, NDBuffer


@dataclass(frozen=True)
class TerraneCodec(ArrayBytesCodec):
    """Codes chunks of two axes (others of length one may come before) with a guaranteed error, or without any.

    ``max_error`` is in the unit of the values and holds at every one that is not NaN; NaN comes back as NaN. Integers need
    ``lossless=True``. ``method`` is "context" or "integers", ``profile`` "fast", "standard" or "best", ``effort`` 0 to 3.
    ``model`` is the hash of the model that chunks are made with; it is written to the array's metadata, so that chunks of
    another model are noticed.
    """

    is_fixed_size = False

    max_error: float | None = None
    lossless: bool = False
    method: str = "context"
    profile: str = "standard"
    effort: int = 1
    model: str | None = None

    def __post_init__(self) -> None:
        if (self.max_error is None) != self.lossless:
            raise ValueError("give `max_error` or `lossless`")
        check_whole(255, effort=self.effort)
        own = self._coder(False).model
        if self.model is not None and self.model != own:
            raise ValueError(
                f"the chunks were made with the model {self.model}, and this package has {own}"
            )
        object.__setattr__(self, "model", own)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TerraneCodec:
        """The codec of an array's metadata."""
        configuration = data.get("configuration", {})
        unknown = set(configuration) - {field.name for field in fields(cls)}
        if data.get("name") != "terrane" or unknown:
            raise ValueError(f"not a configuration of the codec terrane: {data}")
        return cls(**configuration)

    def to_dict(self) -> dict[str, Any]:
        """The codec as an array's metadata has it."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        configuration = {name: value for name, value in values.items() if value is not None}
        return {"name": "terrane", "configuration": configuration}

    def _coder(self, is_f32: bool) -> TileCoder:
        settings = Settings(
            max_error=self.max_error,
            lossless=self.lossless,
            method=self.method,
            profile=self.profile,
            effort=self.effort,
        )
        return TileCoder(settings, is_f32)

    @cached_property
    def _coders(self) -> dict[bool, TileCoder]:
        return {is_f32: self._coder(is_f32) for is_f32 in (False, True)}

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state.pop("_coders", None)
        return state

    def validate(self, *, shape: Any, dtype: Any, chunk_grid: Any) -> None:
        """Refuses arrays that are not heights on a grid."""
        kind = np.dtype(dtype.to_native_dtype())
        if kind not in (np.float32, np.float64) and not self.lossless:
            raise ValueError(f"values of {kind} need lossless=True")
        if kind.kind not in "iuf" or (kind.kind in "iu" and kind.itemsize > 4):
            raise ValueError(f"the codec terrane is for floats and integers of 32 bits, not {kind}")
        chunks = getattr(chunk_grid, "chunk_shape", shape)
        if len(chunks) < 2 or any(size != 1 for size in chunks[:-2]):
            raise ValueError(f"chunks must have two axes, with others of length 1 before: {chunks}")
        if max(chunks[-2:]) > 4096:
            raise ValueError(f"chunks may be 4096 values across, not {max(chunks[-2:])}")

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """Chunks have the length that they need."""
        raise NotImplementedError

    def _encode_sync(self, chunk_array: NDBuffer, chunk_spec: ArraySpec) -> Buffer | None:
        values = chunk_array.as_numpy_array()
        plane = values.reshape(values.shape[-2:])
        coder = self._coders[plane.dtype == np.float32]
        encoded = coder.encode(heights_of(plane)[0])
        return chunk_spec.prototype.buffer.from_bytes(encoded)

    def _decode_sync(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        kind = np.dtype(chunk_spec.dtype.to_native_dtype())
        rows, columns = chunk_spec.shape[-2:]
        coder = self._coders[kind == np.float32]
        heights = coder.decode(chunk_bytes.to_bytes(), (rows, columns))
        values = heights.astype(kind, copy=False).reshape(chunk_spec.shape)
        return chunk_spec.prototype.nd_buffer.from_numpy_array(values)

    async def _encode_single(self, chunk_array: NDBuffer, chunk_spec: ArraySpec) -> Buffer | None:
        return await asyncio.to_thread(self._encode_sync, chunk_array, chunk_spec)

    async def _decode_single(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        return await asyncio.to_thread(self._decode_sync, chunk_bytes, chunk_spec)
