"""Low-rank adapters on a frozen decoder: only lora_a and lora_b are trained (--freeze says so to headroom)."""

import torch
from torch import nn

from gpt2 import GPT


class LoRALinear(nn.Module):
    def __init__(self, linear, rank=8, alpha=16):
        super().__init__()
        self.linear, self.scale = linear, alpha / rank
        self.lora_a = nn.Parameter(torch.randn(rank, linear.in_features) * 0.02)
        self.lora_b = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x):
        return self.linear(x) + (x @ self.lora_a.t() @ self.lora_b.t()) * self.scale


def gpt_lora():
    model = GPT(layers=4)
    for block in model.h:
        block.attn.c_attn = LoRALinear(block.attn.c_attn)
    for name, parameter in model.named_parameters():
        parameter.requires_grad = "lora_" in name
    return model, {"input_ids": torch.randint(0, 50257, (2, 64))}
