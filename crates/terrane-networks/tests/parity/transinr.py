"""TransINR."""

import numpy as np

from layers import (
    attention, column_normalised, gelu, grid, layer_norm, linear, norm_linear, patches_of, positional_encoding, relu,
)
from tensors import Weights, compared, terrain, write

TRANSINR = {
    "method": "transinr", "side": 32, "patch": 9, "padding": 1, "width": 24, "depth": 2, "heads": 3, "hidden": 48,
    "groups": 4, "inr_layers": 5, "inr_width": 8, "frequencies": 2,
}


def inr_shapes(c):
    """(fan in, fan out) of every layer of the coordinate network."""
    widths = [4 * c["frequencies"]] + [c["inr_width"]] * (c["inr_layers"] - 1) + [1]
    return list(zip(widths, widths[1:]))


def make_weights():
    w, c = Weights(25), TRANSINR
    data_tokens = ((c["side"] + 2 * c["padding"]) // c["patch"]) ** 2
    weight_tokens = sum(min(c["groups"], outputs) for _, outputs in inr_shapes(c))
    w.linear("tokenizer", c["patch"] ** 2, c["width"])
    w.normal("posemb", data_tokens, c["width"], deviation=0.3)
    # Small, so that the epsilon of the norm shows.
    w.normal("wtokens", weight_tokens, c["width"], deviation=0.05)
    for i in range(c["depth"]):
        layer = f"transformer.layers.{i}"
        w.norm(f"{layer}.0.norm", c["width"])
        w.linear(f"{layer}.0.fn.to_q", c["width"], c["width"], bias=None)
        w.linear(f"{layer}.0.fn.to_kv", c["width"], 2 * c["width"], bias=None)
        w.linear(f"{layer}.0.fn.to_out", c["width"], c["width"])
        w.norm(f"{layer}.1.norm", c["width"])
        w.linear(f"{layer}.1.fn.net.0", c["width"], c["hidden"])
        w.linear(f"{layer}.1.fn.net.2", c["hidden"], c["width"])
    for layer, (inputs, outputs) in enumerate(inr_shapes(c)):
        w.norm(f"heads.{layer}.0", c["width"])
        w.linear(f"heads.{layer}.1", c["width"], inputs)
        w.normal(f"base.wb{layer}", inputs + 1, outputs, deviation=0.3)
    return w


def encode(w, c, tile):
    padded = np.pad(tile, c["padding"])
    n = padded.shape[0] // c["patch"]
    data = linear(w, "tokenizer", patches_of(padded[None, :n * c["patch"], :n * c["patch"]], c["patch"])) + w["posemb"]
    x = np.concatenate([data, w["wtokens"]])
    for i in range(c["depth"]):
        layer = f"transformer.layers.{i}"
        y = layer_norm(w, f"{layer}.0.norm", x)
        k, v = np.split(linear(w, f"{layer}.0.fn.to_kv", y), 2, axis=1)
        mixed = attention(linear(w, f"{layer}.0.fn.to_q", y), k, v, c["heads"])
        x = x + linear(w, f"{layer}.0.fn.to_out", mixed)
        y = layer_norm(w, f"{layer}.1.norm", x)
        x = x + linear(w, f"{layer}.1.fn.net.2", gelu(linear(w, f"{layer}.1.fn.net.0", y)))
    return x[len(data):]


def decode(w, c, tokens):
    h = positional_encoding(grid(c["side"]), c["frequencies"]).astype(tokens.dtype)
    first = 0
    for layer, (inputs, outputs) in enumerate(inr_shapes(c)):
        groups = min(c["groups"], outputs)
        columns = norm_linear(w, f"heads.{layer}", tokens[first:first + groups])
        first += groups
        factors = np.array([columns[j % groups] for j in range(outputs)]).T
        wb = w[f"base.wb{layer}"]
        h = h @ column_normalised(wb[:-1] * factors) + wb[-1]
        if layer + 1 < c["inr_layers"]:
            h = relu(h)
    return (h[:, 0] + 0.5).reshape(c["side"], c["side"])


def run(w, c, tiles):
    tokens = [encode(w, c, tile) for tile in tiles]
    return {"tokens": np.array(tokens), "output": np.array([decode(w, c, t) for t in tokens])}


def make():
    w, c = make_weights(), TRANSINR
    tiles = terrain(np.random.RandomState(21), c["side"])
    results = compared("transinr", run, w, c, tiles)
    seen = (c["side"] + 2 * c["padding"]) // c["patch"] * c["patch"] - c["padding"]
    for place, changes in ((seen, False), (seen - 1, True)):
        for index in ((place, slice(None)), (slice(None), place)):
            tile = tiles[0].copy()
            tile[index] = 1 - tile[index]
            change = np.abs(encode(w, c, tile) - results["tokens"][0]).max()
            assert (change > 1e-3) == changes, "which pixels the encoder sees"
    write("transinr", c, w, {"tiles": tiles, **results})
