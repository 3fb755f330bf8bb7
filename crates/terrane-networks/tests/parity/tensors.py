"""Deterministic weights and tiles, comparisons, and the files."""

import json
import math
import pathlib

import numpy as np
from safetensors.numpy import save_file

FOLDER = pathlib.Path(__file__).parent
TOLERANCE = 1e-5


class Weights(dict):
    """Tensors by name, held in float64 but with float32 values."""

    def __init__(self, seed):
        super().__init__()
        # RandomState, because its stream is frozen while that of default_rng may change between versions of NumPy.
        self.random = np.random.RandomState(seed)

    def normal(self, name, *shape, mean=0.0, deviation=1.0):
        self[name] = rounded(mean + deviation * self.random.standard_normal(shape))

    def uniform(self, name, *shape, bound):
        self[name] = rounded(self.random.uniform(-bound, bound, shape))

    def linear(self, name, inputs, outputs, bias=0.1, gain=1.0, mean_bias=0.0):
        self.normal(f"{name}.weight", outputs, inputs, deviation=gain / math.sqrt(inputs))
        if bias is not None:
            self.normal(f"{name}.bias", outputs, mean=mean_bias, deviation=bias)

    def norm(self, name, width):
        self.normal(f"{name}.weight", width, mean=1.0, deviation=0.2)
        self.normal(f"{name}.bias", width, deviation=0.2)


def rounded(x):
    return np.asarray(x, dtype=np.float32).astype(np.float64)


def as_single(weights):
    return {name: tensor.astype(np.float32) for name, tensor in weights.items()}


def terrain(random, side):
    """Two tiles in [0, 1]: slopes, ridges and some roughness."""
    centres = -1 + (2 * np.arange(side) + 1) / side
    y, x = np.meshgrid(centres, centres, indexing="ij")
    tiles = []
    for _ in range(2):
        z = random.normal() * y + random.normal() * x + 0.05 * random.standard_normal((side, side))
        for frequency in (2, 3, 5, 9):
            turn, phase = random.uniform(0, math.pi), random.uniform(0, 2 * math.pi)
            z += np.abs(np.sin(frequency * (y * math.cos(turn) + x * math.sin(turn)) + phase)) / frequency
        tiles.append((z - z.min()) / (z.max() - z.min()))
    return rounded(tiles)


def close(found, expected, tolerance):
    error = np.abs(found - expected).max()
    scale = max(1e-3, np.abs(expected).max())
    assert error <= tolerance * scale, f"{error:.3g} against {scale:.3g}"


def differ(found, expected):
    assert np.abs(found - expected).max() > 1e-3 * np.abs(found).max(), "a difference that should show does not"


def stacked(results):
    return {name: np.array([result[name] for result in results]) for name in results[0]}


def compared(name, run, w, c, inputs):
    """The results in float64, after a look at what float32 makes of them."""
    exact = run(w, c, inputs)
    single = run(as_single(w), c, inputs.astype(np.float32))
    errors = {}
    for key, values in exact.items():
        assert single[key].dtype == np.float32, f"{name} {key} is {single[key].dtype} in the float32 run"
        if np.abs(values).max() > 0:
            errors[key] = np.abs(single[key] - values).max() / np.abs(values).max()
    print(f"{name}: " + ", ".join(f"{key} {error:.1e}" for key, error in errors.items()))
    assert max(errors.values()) < TOLERANCE
    return exact


def write(name, config, weights, tests):
    tensors = {**weights, **{f"test.{key}": values for key, values in tests.items()}}
    tensors = {key: np.ascontiguousarray(values, dtype=np.float32) for key, values in tensors.items()}
    save_file(tensors, FOLDER / f"{name}.safetensors", metadata={"config": json.dumps(config)})
