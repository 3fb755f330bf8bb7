"""The codec of Zarr 3."""

import json
import pickle

import numpy as np
import pytest
import xarray as xr
import zarr

import pyterrane
from conftest import hills
from pyterrane.zarr import TerraneCodec


def create(store, heights, codec, chunks=(64, 64), **more):
    array = zarr.create_array(store, shape=heights.shape, chunks=chunks, dtype=heights.dtype, serializer=codec,
                              compressors=None, fill_value=np.nan if heights.dtype.kind == "f" else 0, **more)
    array[:] = heights
    return zarr.open_array(store, mode="r")


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("codec", [
    TerraneCodec(max_error=0.1),
    TerraneCodec(max_error=0.02, profile="fast", effort=0),
    TerraneCodec(max_error=0.5, method="integers"),
    TerraneCodec(lossless=True),
    TerraneCodec(lossless=True, method="integers"),
], ids=str)
def test_chunks_keep_their_bound(kind, codec, tmp_path):
    heights = hills(150, 210).astype(kind)
    back = create(tmp_path / "a.zarr", heights, codec)[:]
    assert back.dtype == heights.dtype
    assert (np.isnan(back) == np.isnan(heights)).all()
    error = np.nanmax(np.abs(back.astype(float) - heights.astype(float)))
    assert error == 0 if codec.lossless else 0 < error <= codec.max_error


def test_integers_come_back(tmp_path):
    heights = np.nan_to_num(hills(100, 100)).astype("int16")
    np.testing.assert_array_equal(create(tmp_path / "a.zarr", heights, TerraneCodec(lossless=True))[:], heights)
    with pytest.raises(ValueError, match="int16 need lossless"):
        create(tmp_path / "b.zarr", heights, TerraneCodec(max_error=1.0))


def test_a_chunk_is_the_tile_of_a_file_of_its_own(tmp_path):
    """The same bytes in both containers: a chunk has no tile above it."""
    heights = hills(192, 256)
    array = create(tmp_path / "a.zarr", heights, TerraneCodec(max_error=0.1))
    for row in range(3):
        for column in range(4):
            part = np.s_[64 * row : 64 * (row + 1), 64 * column : 64 * (column + 1)]
            pyterrane.encode(np.ascontiguousarray(heights[part]), tmp_path / "a.trn", max_error=0.1, tile=64, overwrite=True)
            terrain = pyterrane.open(tmp_path / "a.trn")
            chunk = (tmp_path / f"a.zarr/c/{row}/{column}").read_bytes()
            assert chunk == terrain._file.record(0, 0, 0)
            np.testing.assert_array_equal(array[part], terrain.read())


def test_shards_of_zarr_axes_of_one_and_empty_chunks(tmp_path):
    heights = hills(128, 256)
    heights[:64, :64] = np.nan
    array = create(tmp_path / "a.zarr", heights, TerraneCodec(max_error=0.1), shards=(128, 128),
                   config={"write_empty_chunks": True})
    assert np.isnan(array[:64, :64]).all() and np.nanmax(np.abs(array[:] - heights)) <= 0.1
    stack = np.stack([heights, heights + 1])
    array = create(tmp_path / "b.zarr", stack, TerraneCodec(max_error=0.1), chunks=(1, 64, 64))
    assert np.nanmax(np.abs(array[:] - stack)) <= 0.1
    with pytest.raises(ValueError, match="two axes"):
        create(tmp_path / "c.zarr", stack, TerraneCodec(max_error=0.1), chunks=(2, 64, 64))


def test_xarray_writes_and_reads_it(tmp_path):
    heights = hills(128, 128)
    dataset = xr.Dataset({"height": (("y", "x"), heights)})
    encoding = {"height": {"serializer": TerraneCodec(max_error=0.1), "compressors": None, "chunks": (64, 64)}}
    dataset.to_zarr(tmp_path / "a.zarr", encoding=encoding, zarr_format=3, consolidated=False)
    back = xr.open_zarr(tmp_path / "a.zarr", consolidated=False).height
    assert float(np.abs(back - heights).max()) <= 0.1


def test_the_metadata_says_how_and_with_what(tmp_path):
    codec = TerraneCodec(max_error=0.1)
    create(tmp_path / "a.zarr", hills(64, 64), codec)
    path = tmp_path / "a.zarr/zarr.json"
    written = json.loads(path.read_text())["codecs"][0]
    assert written["name"] == "terrane" and written["configuration"]["max_error"] == 0.1
    assert len(written["configuration"]["model"]) == 64
    assert TerraneCodec.from_dict(written) == codec == pickle.loads(pickle.dumps(codec))
    path.write_text(path.read_text().replace(codec.model, "0" * 64))
    with pytest.raises(ValueError, match="another|made with the model"):
        zarr.open_array(tmp_path / "a.zarr", mode="r")


def test_damage_and_nonsense_are_errors(tmp_path):
    array = create(tmp_path / "a.zarr", hills(64, 64), TerraneCodec(max_error=0.1))
    chunk = tmp_path / "a.zarr/c/0/0"
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 1
    chunk.write_bytes(data)
    with pytest.raises(pyterrane.TerraneError, match="damaged"):
        array[:]
    for settings in [{}, {"max_error": 0.1, "lossless": True}, {"max_error": 0.1, "method": "huvr-siren"},
                     {"max_error": 0.0}, {"max_error": 0.1, "profile": "slow"}]:
        with pytest.raises(ValueError):
            TerraneCodec(**settings)
    with pytest.raises(ValueError, match="not a configuration"):
        TerraneCodec.from_dict({"name": "terrane", "configuration": {"max_error": 0.1, "speed": 1}})
