"""A causal decoder: GPT-2, with one projection for query, key and value, and a head tied to the embedding."""

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width, heads, p):
        super().__init__()
        self.heads, self.p = heads, p
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.dropout = nn.Dropout(p)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.c_attn(x).split(width, dim=2)
        q = q.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        k = k.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        v = v.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p if self.training else 0.0, is_causal=True)
        out = out.transpose(1, 2).contiguous().view(batch, length, width)
        return self.dropout(self.c_proj(out))


class MLP(nn.Module):
    def __init__(self, width, p):
        super().__init__()
        self.c_fc, self.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.gelu, self.dropout = nn.GELU(approximate="tanh"), nn.Dropout(p)

    def forward(self, x):
        x = self.gelu(self.c_fc(x))
        return self.dropout(self.c_proj(x))


class Block(nn.Module):
    def __init__(self, width, heads, p):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(width, heads, p)
        self.ln_2, self.mlp = nn.LayerNorm(width), MLP(width, p)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        x = x + self.mlp(self.ln_2(x))
        return x


class GPT(nn.Module):
    def __init__(self, vocabulary=50257, width=768, heads=12, layers=12, positions=1024, p=0.1):
        super().__init__()
        self.wte, self.wpe, self.drop = nn.Embedding(vocabulary, width), nn.Embedding(positions, width), nn.Dropout(p)
        self.h, self.ln_f = nn.ModuleList(Block(width, heads, p) for _ in range(layers)), nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, input_ids):
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        x = self.drop(self.wte(input_ids) + self.wpe(positions))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def gpt2():
    return GPT(), {"input_ids": torch.randint(0, 50257, (2, 64))}


def gpt2_medium():
    return GPT(width=1024, heads=16, layers=24), {"input_ids": torch.randint(0, 50257, (2, 64))}
