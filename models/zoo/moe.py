"""A mixture of experts: a causal decoder whose feed-forward is eight experts, two of them for each token, each expert
with room for a fixed number of tokens (dispatch and combine by einsum, as in GShard)."""

import torch
from torch import nn
from torch.nn import functional as F

from gpt2 import Attention


class MixtureOfExperts(nn.Module):
    def __init__(self, width, hidden, experts, chosen, capacity_factor=1.25):
        super().__init__()
        self.experts, self.chosen, self.capacity_factor = experts, chosen, capacity_factor
        self.router = nn.Linear(width, experts, bias=False)
        self.w1 = nn.Parameter(torch.randn(experts, width, hidden) * 0.02)
        self.w2 = nn.Parameter(torch.randn(experts, hidden, width) * 0.02)

    def forward(self, x):
        length = x.shape[1]
        capacity = int(self.capacity_factor * self.chosen) * length // self.experts
        gates = F.softmax(self.router(x), dim=-1)
        weights, index = torch.topk(gates, self.chosen, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        mask = (index.unsqueeze(-1) == torch.arange(self.experts, device=x.device)).to(x.dtype)
        place = (mask.sum(2).cumsum(1) - 1).unsqueeze(-1)
        slots = (place == torch.arange(capacity, device=x.device)).to(x.dtype)
        dispatch = mask.sum(2).unsqueeze(-1) * slots
        combine = (mask * weights.unsqueeze(-1)).sum(2).unsqueeze(-1) * slots
        tokens = torch.einsum("bsec,bsd->becd", dispatch, x)
        hidden = F.gelu(torch.einsum("becd,edh->bech", tokens, self.w1))
        out = torch.einsum("bech,ehd->becd", hidden, self.w2)
        return torch.einsum("bsec,becd->bsd", combine, out)


class Block(nn.Module):
    def __init__(self, width, heads, hidden, experts, chosen):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(width, heads, 0.0)
        self.ln_2, self.moe = nn.LayerNorm(width), MixtureOfExperts(width, hidden, experts, chosen)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.moe(self.ln_2(x))


class MoE(nn.Module):
    def __init__(self, vocabulary=32000, width=768, heads=12, layers=4, hidden=3072, experts=8, chosen=2, positions=1024):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.h = nn.ModuleList(Block(width, heads, hidden, experts, chosen) for _ in range(layers))
        self.ln_f, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, input_ids):
        x = self.wte(input_ids) + self.wpe(torch.arange(input_ids.shape[1], device=input_ids.device))
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))


def moe():
    return MoE(), {"input_ids": torch.randint(0, 32000, (2, 64))}
