"""A bidirectional encoder: a small BERT (4 layers, width 512) with a masked language model head, tied to the embedding."""

import torch
from torch import nn
from torch.nn import functional as F


class SelfAttention(nn.Module):
    def __init__(self, width, heads, p):
        super().__init__()
        self.heads, self.p = heads, p
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.output, self.dropout = nn.Linear(width, width), nn.Dropout(p)

    def forward(self, x):
        batch, length, width = x.shape
        q = self.query(x).view(batch, length, self.heads, -1).transpose(1, 2)
        k = self.key(x).view(batch, length, self.heads, -1).transpose(1, 2)
        v = self.value(x).view(batch, length, self.heads, -1).transpose(1, 2)
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p if self.training else 0.0)
        out = out.transpose(1, 2).reshape(batch, length, width)
        return self.dropout(self.output(out))


class Layer(nn.Module):
    def __init__(self, width, heads, p):
        super().__init__()
        self.attention, self.norm1 = SelfAttention(width, heads, p), nn.LayerNorm(width, eps=1e-12)
        self.expand, self.project = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout, self.norm2 = nn.Dropout(p), nn.LayerNorm(width, eps=1e-12)

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        out = F.gelu(self.expand(x))
        out = self.dropout(self.project(out))
        return self.norm2(x + out)


class Bert(nn.Module):
    def __init__(self, vocabulary=30522, width=512, heads=8, layers=4, positions=512, p=0.1):
        super().__init__()
        self.word, self.position = nn.Embedding(vocabulary, width, padding_idx=0), nn.Embedding(positions, width)
        self.norm, self.dropout = nn.LayerNorm(width, eps=1e-12), nn.Dropout(p)
        self.layers = nn.ModuleList(Layer(width, heads, p) for _ in range(layers))
        self.transform, self.transform_norm = nn.Linear(width, width), nn.LayerNorm(width, eps=1e-12)
        self.decoder = nn.Linear(width, vocabulary)
        self.decoder.weight = self.word.weight
        self.register_buffer("position_ids", torch.arange(positions).unsqueeze(0), persistent=False)

    def forward(self, input_ids):
        positions = self.position_ids[:, : input_ids.shape[1]]
        x = self.word(input_ids) + self.position(positions)
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            x = layer(x)
        x = self.transform_norm(F.gelu(self.transform(x)))
        return self.decoder(x)


def bert_small():
    return Bert(), {"input_ids": torch.randint(0, 30522, (2, 64))}
