"""The DINOv3 teacher, under the three sets of names in which its weights are published."""

import math

import numpy as np

from layers import attention, gelu, layer_norm, linear, patches_of
from tensors import Weights, compared, differ, rounded, stacked, write

DINOV3 = {
    "method": "dinov3", "side": 32, "patch": 8, "width": 32, "depth": 2, "heads": 2, "hidden": 64, "storage_tokens": 4,
}


def make_weights():
    w, c = Weights(40), DINOV3
    width = c["width"]
    # Small, so that the epsilon of the norm shows.
    w.normal("cls_token", 1, 1, width, deviation=0.03)
    w.normal("storage_tokens", 1, c["storage_tokens"], width, deviation=0.1)
    w.normal("patch_embed.proj.weight", width, 3, c["patch"], c["patch"], deviation=0.07)
    w.normal("patch_embed.proj.bias", width, deviation=0.1)
    for i in range(c["depth"]):
        w.norm(f"blocks.{i}.norm1", width)
        w.linear(f"blocks.{i}.attn.qkv", width, 3 * width, bias=0.5)
        w.linear(f"blocks.{i}.attn.proj", width, width)
        w.normal(f"blocks.{i}.ls1.gamma", width, mean=0.5, deviation=0.2)
        w.norm(f"blocks.{i}.norm2", width)
        w.linear(f"blocks.{i}.mlp.fc1", width, c["hidden"])
        w.linear(f"blocks.{i}.mlp.fc2", c["hidden"], width)
        w.normal(f"blocks.{i}.ls2.gamma", width, mean=0.5, deviation=0.2)
    w.norm("norm", width)
    return w


def ignored_tensors(c):
    """What the original files hold besides and a reader has to pass over; the mask of the bias may be uninitialised."""
    size = c["width"] // c["heads"] // 4
    tensors = {"mask_token": np.full((1, c["width"]), 7.0), "rope_embed.periods": 100 ** (np.arange(size) / size)}
    for i in range(c["depth"]):
        tensors[f"blocks.{i}.attn.qkv.bias_mask"] = np.full(3 * c["width"], np.nan)
    return tensors


def forward(w, c, image, key_bias=False):
    width, n = c["width"], c["side"] // c["patch"]
    embedding = w["patch_embed.proj.weight"].reshape(width, -1)
    x = patches_of(image, c["patch"]) @ embedding.T + w["patch_embed.proj.bias"]
    x = np.concatenate([w["cls_token"][0], w["storage_tokens"][0], x])

    def turn(head):
        return rotated_halves(head, 1 + c["storage_tokens"], n)

    for i in range(c["depth"]):
        block = f"blocks.{i}"
        bias = w[f"{block}.attn.qkv.bias"].copy()
        if not key_bias:
            bias[width:2 * width] = 0
        qkv = layer_norm(w, f"{block}.norm1", x) @ w[f"{block}.attn.qkv.weight"].T + bias
        q, k, v = np.split(qkv, 3, axis=1)
        mixed = linear(w, f"{block}.attn.proj", attention(q, k, v, c["heads"], turn))
        x = x + w[f"{block}.ls1.gamma"] * mixed
        h = gelu(linear(w, f"{block}.mlp.fc1", layer_norm(w, f"{block}.norm2", x)))
        x = x + w[f"{block}.ls2.gamma"] * linear(w, f"{block}.mlp.fc2", h)
    x = layer_norm(w, "norm", x)
    return {"cls": x[0], "patches": x[1 + c["storage_tokens"]:]}


def rotated_halves(head, first, n):
    """Rotary embedding on (k, k + half): the first quarter by row, the second by column; tokens before `first` stay."""
    half, quarter = head.shape[1] // 2, head.shape[1] // 4
    turned = head.copy()
    for patch in range(n * n):
        centres = [2 * (i + 0.5) / n - 1 for i in divmod(patch, n)]
        angles = [2 * math.pi * centre / 100 ** (k / quarter) for centre in centres for k in range(quarter)]
        for k, angle in enumerate(angles):
            a, b = head[first + patch, k], head[first + patch, k + half]
            turned[first + patch, k] = a * math.cos(angle) - b * math.sin(angle)
            turned[first + patch, k + half] = b * math.cos(angle) + a * math.sin(angle)
    return turned


def run(w, c, images):
    return stacked([forward(w, c, image) for image in images])


def hugging_face_names(w, c):
    renamed = {
        "embeddings.cls_token": w["cls_token"],
        "embeddings.register_tokens": w["storage_tokens"],
        "embeddings.mask_token": np.full((1, 1, c["width"]), 7.0),
        "embeddings.patch_embeddings.weight": w["patch_embed.proj.weight"],
        "embeddings.patch_embeddings.bias": w["patch_embed.proj.bias"],
        "norm.weight": w["norm.weight"],
        "norm.bias": w["norm.bias"],
    }
    same = {"norm1": "norm1", "norm2": "norm2", "attn.proj": "attention.o_proj", "mlp.fc1": "mlp.up_proj",
            "mlp.fc2": "mlp.down_proj"}
    for i in range(c["depth"]):
        for original, name in same.items():
            for part in ("weight", "bias"):
                renamed[f"layer.{i}.{name}.{part}"] = w[f"blocks.{i}.{original}.{part}"]
        for part, weight in zip("qkv", np.split(w[f"blocks.{i}.attn.qkv.weight"], 3)):
            renamed[f"layer.{i}.attention.{part}_proj.weight"] = weight
        q_bias, _, v_bias = np.split(w[f"blocks.{i}.attn.qkv.bias"], 3)
        renamed[f"layer.{i}.attention.q_proj.bias"] = q_bias
        renamed[f"layer.{i}.attention.v_proj.bias"] = v_bias
        renamed[f"layer.{i}.layer_scale1.lambda1"] = w[f"blocks.{i}.ls1.gamma"]
        renamed[f"layer.{i}.layer_scale2.lambda1"] = w[f"blocks.{i}.ls2.gamma"]
    return renamed


def timm_names(w, c):
    """The names of the `_qkvb` variants, which keep the biases of q and v."""
    renamed = {name: tensor for name, tensor in w.items() if not name.endswith(("qkv.bias", "gamma", "storage_tokens"))}
    renamed["reg_token"] = w["storage_tokens"]
    for i in range(c["depth"]):
        q_bias, _, v_bias = np.split(w[f"blocks.{i}.attn.qkv.bias"], 3)
        renamed[f"blocks.{i}.attn.q_bias"] = q_bias
        renamed[f"blocks.{i}.attn.v_bias"] = v_bias
        renamed[f"blocks.{i}.gamma_1"] = w[f"blocks.{i}.ls1.gamma"]
        renamed[f"blocks.{i}.gamma_2"] = w[f"blocks.{i}.ls2.gamma"]
    return renamed


def make():
    w, c = make_weights(), DINOV3
    images = rounded(np.random.RandomState(41).standard_normal((2, 3, c["side"], c["side"])))
    results = compared("dinov3", run, w, c, images)
    differ(forward(w, c, images[0], key_bias=True)["patches"], results["patches"][0])
    write("dinov3", c, {**w, **ignored_tensors(c)}, {"image": images, **results})
    write("dinov3_hf", c, hugging_face_names(w, c), {})
    write("dinov3_timm", c, timm_names(w, c), {})
