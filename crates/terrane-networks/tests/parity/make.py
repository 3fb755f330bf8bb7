"""Writes the reference networks of this folder: every method in a small configuration, in plain NumPy and float64.

    pip install numpy safetensors
    python make.py

Weights are rounded to float32 before anything is computed from them, so that another implementation starts from the
same numbers. Names beginning with `test.` hold inputs and expected outputs; all other tensors are weights. The metadata
holds the configuration as JSON under `config`; where it has `shared`, the tensors with these prefixes are to be taken
from the file it names, and the others are here. Every method checks itself before it is written, and is run in float32
as well, to print how far that is from the written values, relative to the greatest of them.
"""

import json
import math

import numpy as np

import dinov3
import functa
import huvr
import transinr
from tensors import FOLDER, close

GREATEST_TOTAL_BYTES = 1_200_000


def koleo(x):
    """Minus the mean logarithm of the distance to the nearest neighbour on the sphere."""
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    dots = x @ x.T
    np.fill_diagonal(dots, -1)
    distances = [np.linalg.norm(x[i] - x[dots[i].argmax()]) for i in range(len(x))]
    return -np.mean(np.log(np.array(distances) + 1e-8))


def make_losses():
    # Eighths, so that float32 and the decimals of JSON hold them exactly.
    x = np.round(8 * np.random.RandomState(50).standard_normal((4, 8))) / 8
    close(koleo(np.arange(1, 5)[:, None] * x), koleo(x), 1e-12)
    close(koleo(np.eye(4)), -math.log(math.sqrt(2)), 1e-7)
    losses = {"koleo": {"input": x.tolist(), "expected": koleo(x)}}
    (FOLDER / "losses.json").write_text(json.dumps(losses, indent=2) + "\n")


def main():
    huvr.make()
    transinr.make()
    functa.make()
    dinov3.make()
    make_losses()
    files = sorted([*FOLDER.glob("*.safetensors"), FOLDER / "losses.json"])
    for file in files:
        print(f"{file.stat().st_size:>9} {file.name}")
    total = sum(file.stat().st_size for file in files)
    print(f"{total:>9} in all")
    assert total < GREATEST_TOTAL_BYTES


if __name__ == "__main__":
    main()
