"""A decoder of the newer kind: grouped-query attention, rotary embedding, RMS norm, gated feed-forward."""

import torch
from torch import nn
from torch.nn import functional as F


class RMSNorm(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        dtype = x.dtype
        x = x.to(torch.float32)
        variance = x.pow(2).mean(-1, keepdim=True)
        x = x * torch.rsqrt(variance + self.eps)
        return self.weight * x.to(dtype)


class Rotary(nn.Module):
    def __init__(self, head_width, base=10000.0):
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, head_width, 2).float() / head_width))
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    def forward(self, x):
        positions = torch.arange(x.shape[1], device=x.device).float()
        angles = torch.outer(positions, self.inv_freq)
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


def rotate(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Attention(nn.Module):
    def __init__(self, width, heads, key_value_heads):
        super().__init__()
        self.head_width = width // heads
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, key_value_heads * self.head_width, bias=False)
        self.v_proj = nn.Linear(width, key_value_heads * self.head_width, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x, cos, sin):
        batch, length, width = x.shape
        q = self.q_proj(x).view(batch, length, -1, self.head_width).transpose(1, 2)
        k = self.k_proj(x).view(batch, length, -1, self.head_width).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, -1, self.head_width).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, width))


class FeedForward(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, width, heads, key_value_heads, hidden):
        super().__init__()
        self.input_norm, self.self_attn = RMSNorm(width), Attention(width, heads, key_value_heads)
        self.post_norm, self.mlp = RMSNorm(width), FeedForward(width, hidden)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_norm(x), cos, sin)
        return x + self.mlp(self.post_norm(x))


class Llama(nn.Module):
    def __init__(self, vocabulary=32000, width=2048, heads=32, key_value_heads=4, hidden=5632, layers=8):
        super().__init__()
        self.embed_tokens, self.rotary = nn.Embedding(vocabulary, width), Rotary(width // heads)
        self.layers = nn.ModuleList(Layer(width, heads, key_value_heads, hidden) for _ in range(layers))
        self.norm, self.lm_head = RMSNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, input_ids):
        x = self.embed_tokens(input_ids)
        cos, sin = self.rotary(x)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.lm_head(self.norm(x))


def llama_small():
    return Llama(), {"input_ids": torch.randint(0, 32000, (2, 64))}
