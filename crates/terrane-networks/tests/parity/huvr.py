"""HUVR and HUVR+SIREN."""

import math

import numpy as np

from layers import (
    JET, affine_jet, attention, check_jet, column_normalised, coordinates, gelu, grid, image_of, layer_norm, linear,
    norm_linear, patches_of, positional_encoding, relu, silu, sine_jet,
)
from tensors import Weights, close, compared, differ, rounded, stacked, terrain, write

HUVR = {
    "side": 32, "patch": 8, "width": 48, "depth": 2, "heads": 4, "hidden": int(48 * 8 / 3), "bottleneck": 6,
    "decoder_width": 40, "decoder_hidden": 64, "decoder_depth": 2, "decoder_heads": 4, "decoder_attention": False,
}
HUVR_MLP = {"mlp_width": 16, "frequencies": 4, "query_side": 4}
SIREN = {"siren_width": 16, "sine_layers": 3, "omega": 10.0}
TRUNK = ("transformer_encoder.", "dimension_downsample.", "dimension_upsample.", "transformer_decoder.")


def trunk_weights():
    """Encoder, bottleneck and decoder, which HUVR and all kinds of HUVR+SIREN share here to keep the files small."""
    w, c = Weights(1), HUVR
    # Small, so that the epsilon of the norm shows.
    w.normal("transformer_encoder.cls_token", 1, 1, c["width"], deviation=0.03)
    w.normal("transformer_encoder.patch_embed.proj.weight", c["width"], 3, c["patch"], c["patch"], deviation=0.1)
    w.normal("transformer_encoder.patch_embed.proj.bias", c["width"], deviation=0.1)
    for i in range(c["depth"]):
        block = f"transformer_encoder.blocks.{i}"
        w.norm(f"{block}.norm1", c["width"])
        w.linear(f"{block}.attn.qkv", c["width"], 3 * c["width"])
        w.linear(f"{block}.attn.proj", c["width"], c["width"])
        w.norm(f"{block}.norm2", c["width"])
        w.linear(f"{block}.mlp.w1", c["width"], c["hidden"])
        w.linear(f"{block}.mlp.w2", c["width"], c["hidden"])
        w.norm(f"{block}.mlp.ffn_ln", c["hidden"])
        w.linear(f"{block}.mlp.w3", c["hidden"], c["width"])
    w.norm("transformer_encoder.norm", c["width"])
    w.norm("dimension_downsample.0", c["width"])
    w.linear("dimension_downsample.1", c["width"], c["bottleneck"], gain=0.2)
    w.norm("dimension_upsample.0", c["bottleneck"])
    w.linear("dimension_upsample.1", c["bottleneck"], c["decoder_width"])
    for i in range(c["decoder_depth"]):
        layer = f"transformer_decoder.layers.{i}.1"
        w.norm(f"{layer}.norm", c["decoder_width"])
        w.linear(f"{layer}.fn.net.0", c["decoder_width"], c["decoder_hidden"], gain=2.0)
        w.linear(f"{layer}.fn.net.3", c["decoder_hidden"], c["decoder_width"], gain=2.0)
    return w


def huvr_weights():
    w, state, width = Weights(2), HUVR["decoder_width"], HUVR_MLP["mlp_width"]
    inputs = 4 * HUVR_MLP["frequencies"]
    scale = HUVR["patch"] // HUVR_MLP["query_side"]
    for layer, fan_in in enumerate((inputs, width, width)):
        w.normal(f"base_params.wb{layer}", fan_in + 1, width, deviation=0.3)
    w.normal("base_params.cnn_wb0", 9 * width + 1, 3 * scale**2, deviation=0.3)
    for kind in ("patch", "global"):
        w.norm(f"wtoken_postfc.wb1_{kind}_postfc.0", state)
        w.linear(f"wtoken_postfc.wb1_{kind}_postfc.1", state, width)
    return w


def huvr_siren_weights(seed, modulation, decoder_attention):
    w, state, width = Weights(seed), HUVR["decoder_width"], SIREN["siren_width"]
    w.normal("input_proj.weight", 3, 1, 1, 1)
    w.normal("input_proj.bias", 3, deviation=0.3)
    if decoder_attention:
        for i in range(HUVR["decoder_depth"]):
            layer = f"transformer_decoder.layers.{i}.0"
            w.norm(f"{layer}.norm", state)
            w.linear(f"{layer}.fn.to_q", state, state, bias=None)
            w.linear(f"{layer}.fn.to_kv", state, 2 * state, bias=None)
            w.linear(f"{layer}.fn.to_out.0", state, state)
    bound = math.sqrt(6 / width) / SIREN["omega"]
    w.uniform("base_params.wb0", 3, width, bound=0.5)
    w.uniform("base_params.wb1", width + 1, width, bound=bound)
    w.uniform("base_params.wb2", width + 1, width, bound=bound)
    w.uniform("base_params.wb3", width + 1, 1, bound=4 * bound)
    for layer in range(SIREN["sine_layers"]):
        if modulation == "incode":
            w.norm(f"incode_postfc.incode{layer}_postfc.0", state)
            w.linear(f"incode_postfc.incode{layer}_postfc.1", state, 4 * width, gain=0.2)
        if modulation in ("both", "amplitude"):
            w.norm(f"mod_postfc.mod{layer}_postfc.0", state)
            w.linear(f"mod_postfc.mod{layer}_postfc.1", state, width, gain=0.3, mean_bias=1.0)
        if modulation in ("both", "shift"):
            w.norm(f"shift_postfc.shift{layer}_postfc.0", state)
            w.linear(f"shift_postfc.shift{layer}_postfc.1", state, width, gain=0.5)
    if modulation == "incode":
        # Three units beyond the clamp: an amplitude and a frequency below, an amplitude above.
        w["incode_postfc.incode1_postfc.1.bias"][0] = -8
        w["incode_postfc.incode1_postfc.1.bias"][width + 1] = -8
        w["incode_postfc.incode2_postfc.1.bias"][2] = 8
        w["base_params.wb3"][2] = rounded(w["base_params.wb3"][2] / math.exp(5))
    return w


def encode(w, c, tile):
    """One tile to its tokens."""
    u = 2 * tile - 1
    if "input_proj.weight" in w:
        channels = [w["input_proj.weight"][i, 0, 0, 0] * u + w["input_proj.bias"][i] for i in range(3)]
    else:
        channels = [u, u, u]
    embedding = w["transformer_encoder.patch_embed.proj.weight"].reshape(c["width"], -1)
    x = patches_of(np.array(channels), c["patch"]) @ embedding.T + w["transformer_encoder.patch_embed.proj.bias"]
    x = np.concatenate([w["transformer_encoder.cls_token"][0], x])

    def turn(head):
        return rotated_pairs(head, c["side"] // c["patch"])

    for i in range(c["depth"]):
        block = f"transformer_encoder.blocks.{i}"
        q, k, v = np.split(linear(w, f"{block}.attn.qkv", layer_norm(w, f"{block}.norm1", x)), 3, axis=1)
        x = x + linear(w, f"{block}.attn.proj", attention(q, k, v, c["heads"], turn))
        y = layer_norm(w, f"{block}.norm2", x)
        h = silu(linear(w, f"{block}.mlp.w1", y)) * linear(w, f"{block}.mlp.w2", y)
        x = x + linear(w, f"{block}.mlp.w3", layer_norm(w, f"{block}.mlp.ffn_ln", h))
    return norm_linear(w, "dimension_downsample", layer_norm(w, "transformer_encoder.norm", x))


def rotated_pairs(head, n):
    """Rotary embedding on adjacent pairs: half of the dimensions by row, half by column; the CLS token stays."""
    axis = head.shape[1] // 2
    theta = [10000 ** (-2 * k / axis) for k in range(axis // 2)]
    turned = head.copy()
    for patch in range(n * n):
        angles = [position * t for position in divmod(patch, n) for t in theta]
        for pair, angle in enumerate(angles):
            a, b = head[1 + patch, 2 * pair], head[1 + patch, 2 * pair + 1]
            turned[1 + patch, 2 * pair] = a * math.cos(angle) - b * math.sin(angle)
            turned[1 + patch, 2 * pair + 1] = b * math.cos(angle) + a * math.sin(angle)
    return turned


def decoder_states(w, c, tokens):
    """Tokens to decoder states."""
    x = norm_linear(w, "dimension_upsample", tokens)
    for i in range(c["decoder_depth"]):
        layer = f"transformer_decoder.layers.{i}"
        if c["decoder_attention"]:
            y = layer_norm(w, f"{layer}.0.norm", x)
            k, v = np.split(linear(w, f"{layer}.0.fn.to_kv", y), 2, axis=1)
            attended = attention(linear(w, f"{layer}.0.fn.to_q", y), k, v, c["decoder_heads"])
            x = x + linear(w, f"{layer}.0.fn.to_out.0", attended)
        else:
            # The attention that is off is an identity inside the residual.
            x = x + x
        y = layer_norm(w, f"{layer}.1.norm", x)
        x = x + linear(w, f"{layer}.1.fn.net.3", gelu(linear(w, f"{layer}.1.fn.net.0", y)))
    return x


def huvr_decode(w, c, tokens):
    states = decoder_states(w, c, tokens)
    x = norm_linear(w, "wtoken_postfc.wb1_patch_postfc", states[1:])
    signs = norm_linear(w, "wtoken_postfc.wb1_global_postfc", states[0])
    encoding = positional_encoding(grid(c["query_side"]), c["frequencies"]).astype(tokens.dtype)
    wb0, wb1, wb2 = (w[f"base_params.wb{layer}"] for layer in range(3))
    features = []
    for patch in range(len(x)):
        h = relu(encoding @ column_normalised(wb0[:-1]) + wb0[-1])
        h = relu(h @ column_normalised(wb1[:-1] * np.outer(x[patch], signs)) + wb1[-1])
        features.append(relu(h @ column_normalised(wb2[:-1]) + wb2[-1]))
    stitched = image_of(np.array(features)).transpose(2, 0, 1)
    o = pixel_shuffled(convolved(w["base_params.cnn_wb0"], stitched), c["patch"] // c["query_side"])
    return {"output": (0.5 * o + 0.5).mean(axis=0)}


def convolved(wb, image):
    """A 3 x 3 convolution with zero padding; rows of `wb` are (channel, kernel row, kernel column), then the bias."""
    _, height, width = image.shape
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1)))
    kernel = column_normalised(wb[:-1])
    output = np.empty((wb.shape[1], height, width), image.dtype)
    for r in range(height):
        for c in range(width):
            output[:, r, c] = padded[:, r:r + 3, c:c + 3].ravel() @ kernel + wb[-1]
    return output


def pixel_shuffled(image, s):
    channels, height, width = image.shape
    output = np.empty((channels // s**2, height * s, width * s), image.dtype)
    for channel in range(channels // s**2):
        for i in range(s):
            for j in range(s):
                output[channel, i::s, j::s] = image[channel * s * s + s * i + j]
    return output


def huvr_siren_decode(w, c, tokens):
    states = decoder_states(w, c, tokens)[1:]
    points = grid(c["patch"])
    jets = [patch_jet(w, c, state, points) for state in states]
    images = {d: image_of(np.array([jet[d] for jet in jets])) for d in JET}
    return {"output": 0.5 * images.pop("value") + 0.5, **images}


def patch_jet(w, c, state, points):
    """f of one patch and its derivatives by local coordinates, each [points]."""
    h = coordinates(points, state.dtype)
    for layer in range(c["sine_layers"]):
        wb = w[f"base_params.wb{layer}"]
        u = affine_jet(c["omega"] * wb[:-1], c["omega"] * wb[-1], h)
        h = sine_jet(u, **modulation_of(w, c, layer, state))
    wb = w[f"base_params.wb{c['sine_layers']}"]
    f = affine_jet(wb[:-1], wb[-1], h)
    return {d: f[d][:, 0] for d in JET}


def modulation_of(w, c, layer, state):
    if c["modulation"] == "incode":
        a, b, shift, offset = np.split(norm_linear(w, f"incode_postfc.incode{layer}_postfc", state), 4)
        amplitude, frequency = np.exp(np.clip(a, -5, 5)), np.exp(np.clip(b, -5, 5))
        return {"amplitude": amplitude, "frequency": frequency, "shift": shift, "offset": offset}
    modulation = {}
    if c["modulation"] in ("both", "amplitude"):
        modulation["amplitude"] = norm_linear(w, f"mod_postfc.mod{layer}_postfc", state)
    if c["modulation"] in ("both", "shift"):
        modulation["shift"] = norm_linear(w, f"shift_postfc.shift{layer}_postfc", state)
    return modulation


def run(w, c, tiles):
    decode = huvr_siren_decode if "omega" in c else huvr_decode
    tokens = [encode(w, c, tile) for tile in tiles]
    images = [decode(w, c, t) for t in tokens]
    return {"tokens": np.array(tokens), **stacked(images)}


def check_payload(w, c, decode, tokens):
    """Decoding does not see a shift and a positive scaling of a token; with the epsilon this holds for large tokens."""
    rows = np.arange(1, len(tokens) + 1)[:, None]
    big = 1e4 * tokens
    close(decode(w, c, rows * big + 3 * rows)["output"], decode(w, c, big)["output"], 1e-6)


def check_huvr(w, c, tokens):
    check_payload(w, c, huvr_decode, tokens)
    output = huvr_decode(w, c, tokens)["output"]
    for name in ("base_params.wb0", "base_params.wb1", "base_params.wb2", "base_params.cnn_wb0"):
        scaled = w[name].copy()
        scaled[:-1] *= np.arange(1, scaled.shape[1] + 1)
        close(huvr_decode({**w, name: scaled}, c, tokens)["output"], output, 1e-12)

    signs = norm_linear(w, "wtoken_postfc.wb1_global_postfc", decoder_states(w, c, tokens)[0])
    assert np.abs(signs).min() > 1e-2, "a sign that float32 could lose"

    def with_signs_times(factors):
        head = "wtoken_postfc.wb1_global_postfc.1"
        weight, bias = w[f"{head}.weight"] * factors[:, None], w[f"{head}.bias"] * factors
        return huvr_decode({**w, f"{head}.weight": weight, f"{head}.bias": bias}, c, tokens)["output"]

    close(with_signs_times(np.arange(1, len(signs) + 1)), output, 1e-12)
    flip = np.where(np.arange(len(signs)) == 3, -1, 1)
    flipped = with_signs_times(flip)
    differ(flipped, output)
    turned = w["base_params.wb1"].copy()
    turned[:-1] *= flip
    close(huvr_decode({**w, "base_params.wb1": turned}, c, tokens)["output"], flipped, 1e-12)


def check_huvr_siren(w, c, tokens):
    check_payload(w, c, huvr_siren_decode, tokens)
    output = huvr_siren_decode(w, c, tokens)["output"]

    def change_after(token):
        moved = tokens.copy()
        moved[token] += np.arange(tokens.shape[1])
        return np.abs(huvr_siren_decode(w, c, moved)["output"] - output)

    change = change_after(6)
    inside = np.zeros_like(change, dtype=bool)
    inside[8:16, 8:16] = True
    differ(change[inside], 0)
    if c["decoder_attention"]:
        differ(change_after(0), 0)
        differ(change[~inside], 0)
    else:
        close(change_after(0), 0, 0)
        close(change[~inside], 0, 0)
    for state in decoder_states(w, c, tokens)[1:]:
        check_jet(lambda points, state=state: patch_jet(w, c, state, points), grid(c["patch"]))


def check_rotation(c):
    """Scores of turned heads depend on the offsets of row and column only."""
    n, size = c["side"] // c["patch"], c["width"] // c["heads"]
    random = np.random.RandomState(0)
    q, k = (rotated_pairs(np.tile(random.standard_normal(size), (1 + n * n, 1)), n) for _ in range(2))
    scores = (q @ k.T)[1:, 1:].reshape(n, n, n, n)
    close(scores[1, 2, 0, 0], scores[2, 3, 1, 1], 1e-12)
    close(scores[0, 1, 2, 0], scores[1, 3, 3, 2], 1e-12)
    differ(scores[1, 2, 0, 0], scores[2, 1, 0, 0])
    close(q[0], q[1], 1e-12)


def make():
    trunk = trunk_weights()
    tiles = terrain(np.random.RandomState(3), HUVR["side"])
    shared = {"file": "huvr_siren.safetensors", "prefixes": [*TRUNK, "test.tiles"]}
    check_rotation(HUVR)

    own, c = huvr_weights(), {"method": "huvr", **HUVR, **HUVR_MLP}
    w = {**trunk, **own}
    results = compared("huvr", run, w, c, tiles)
    check_huvr(w, c, results["tokens"][0])
    write("huvr", {**c, "shared": shared}, own, results)

    kinds = [
        ("huvr_siren", "both", False),
        ("huvr_siren_amplitude", "amplitude", False),
        ("huvr_siren_shift", "shift", False),
        ("huvr_siren_incode", "incode", False),
        ("huvr_siren_attention", "both", True),
    ]
    for seed, (name, modulation, decoder_attention) in enumerate(kinds, start=4):
        c = {"method": "huvr_siren", **HUVR, **SIREN, "modulation": modulation, "decoder_attention": decoder_attention}
        own = huvr_siren_weights(seed, modulation, decoder_attention)
        w = {**trunk, **own}
        results = compared(name, run, w, c, tiles)
        check_huvr_siren(w, c, results["tokens"][0])
        if name == "huvr_siren":
            write(name, c, w, {"tiles": tiles, **results})
        else:
            write(name, {**c, "shared": shared}, own, results)
