"""Layers that several methods share, in the dtype of their inputs."""

import math

import numpy as np

from tensors import close

JET = ("value", "dy", "dx", "dyy", "dxy", "dxx")


def linear(w, name, x):
    y = x @ w[f"{name}.weight"].T
    return y + w[f"{name}.bias"] if f"{name}.bias" in w else y


def layer_norm(w, name, x):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]


def norm_linear(w, name, x):
    return linear(w, f"{name}.1", layer_norm(w, f"{name}.0", x))


def gelu(x):
    return (0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))).astype(x.dtype)


def silu(x):
    return x / (1 + np.exp(-x))


def relu(x):
    return np.maximum(x, 0)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(q, k, v, heads, turn=lambda x: x):
    """q, k and v are [tokens, width]; `turn` is the rotary embedding of one head's [tokens, width / heads]."""
    size = q.shape[1] // heads
    outputs = []
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        scores = turn(q[:, part]) @ turn(k[:, part]).T / math.sqrt(size)
        outputs.append(softmax(scores) @ v[:, part])
    return np.concatenate(outputs, axis=1)


def column_normalised(weight):
    return weight / np.maximum(np.sqrt((weight**2).sum(axis=0)), 1e-12)


def cell_centres(n):
    return np.array([-1 + (2 * i + 1) / n for i in range(n)])


def grid(n):
    """The points (y, x) of an n x n grid of cell centres in [-1, 1], row by row."""
    return np.array([(y, x) for y in cell_centres(n) for x in cell_centres(n)])


def positional_encoding(points, frequencies):
    w = [math.exp(k * math.log(1024) / (frequencies - 1)) for k in range(frequencies)]
    u = np.array([[y * f for f in w] + [x * f for f in w] for y, x in points])
    return np.concatenate([np.cos(math.pi * u), np.sin(math.pi * u)], axis=1)


def patches_of(image, patch):
    """[channels, side, side] to [patches, channels * patch * patch], patches row by row."""
    n = image.shape[1] // patch
    return np.array(
        [image[:, r * patch:(r + 1) * patch, c * patch:(c + 1) * patch].ravel() for r in range(n) for c in range(n)]
    )


def image_of(patches):
    """[patches, points, ...] to [side, side, ...], both row by row."""
    n, patch = math.isqrt(patches.shape[0]), math.isqrt(patches.shape[1])
    image = np.empty((n * patch, n * patch, *patches.shape[2:]), patches.dtype)
    for r in range(n * patch):
        for c in range(n * patch):
            image[r, c] = patches[r // patch * n + c // patch, r % patch * patch + c % patch]
    return image


def coordinates(points, dtype):
    """The jet of the coordinates themselves: every component is [points, 2]."""
    points = points.astype(dtype)
    zero = np.zeros_like(points)
    return dict(zip(JET, (points, zero + np.array([1, 0], dtype), zero + np.array([0, 1], dtype), zero, zero, zero)))


def affine_jet(weight, bias, h):
    """`weight` is [in, out]; the derivatives do not see the bias."""
    u = {d: h[d] @ weight for d in JET}
    u["value"] = u["value"] + bias
    return u


def sine_jet(u, amplitude=1, frequency=1, shift=0, offset=0):
    """amplitude * sin(frequency * u + shift) + offset."""
    u = {d: frequency * u[d] for d in JET}
    sine, cosine = np.sin(u["value"] + shift), np.cos(u["value"] + shift)
    return {
        "value": amplitude * sine + offset,
        "dy": amplitude * cosine * u["dy"],
        "dx": amplitude * cosine * u["dx"],
        "dyy": amplitude * (cosine * u["dyy"] - sine * u["dy"] ** 2),
        "dxy": amplitude * (cosine * u["dxy"] - sine * u["dy"] * u["dx"]),
        "dxx": amplitude * (cosine * u["dxx"] - sine * u["dx"] ** 2),
    }


def check_jet(jet_at, points):
    """Central differences of the value and, for the second order, of the first derivatives."""
    step = 1e-5
    jet = jet_at(points)
    for axis, (first, pairs) in enumerate(
        [("dy", (("dy", "dyy"), ("dx", "dxy"))), ("dx", (("dy", "dxy"), ("dx", "dxx")))]
    ):
        move = np.zeros(2)
        move[axis] = step
        after, before = jet_at(points + move), jet_at(points - move)
        for source, derivative in (("value", first), *pairs):
            close((after[source] - before[source]) / (2 * step), jet[derivative], 1e-7)
