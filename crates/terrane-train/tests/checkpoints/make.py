"""Makes tiny.pth: a training checkpoint as PyTorch writes it, with nested weights, other numbers and other types.

    python make.py      (needs torch)
"""
import pathlib

import torch

folder = pathlib.Path(__file__).parent
weight = torch.arange(6, dtype=torch.float32).reshape(2, 3)
torch.save(
    {
        "model": {
            "layer.weight": weight,
            "layer.turned": weight.t(),
            "layer.half": torch.tensor([0.5, -2.0], dtype=torch.float16),
            "layer.brain": torch.tensor([1.5], dtype=torch.bfloat16),
            "steps": torch.tensor([7]),
        },
        "optimizer": {"state": {0: {"exp_avg": torch.zeros(2)}}},
        "epoch": 3,
    },
    folder / "tiny.pth",
)
