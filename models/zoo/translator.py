"""An encoder and a decoder with cross attention and a padding mask, pre-norm, for translation."""

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.out_proj = nn.Linear(width, width)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x, context, mask=None, causal=False):
        q, k, v = self.split(self.q_proj(x)), self.split(self.k_proj(context)), self.split(self.v_proj(context))
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        return self.out_proj(out.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, width, p):
        super().__init__()
        self.fc1, self.fc2, self.dropout = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.Dropout(p)

    def forward(self, x):
        return self.fc2(self.dropout(F.relu(self.fc1(x))))


class EncoderLayer(nn.Module):
    def __init__(self, width, heads, p):
        super().__init__()
        self.norm1, self.self_attn = nn.LayerNorm(width), Attention(width, heads)
        self.norm2, self.feed_forward, self.dropout = nn.LayerNorm(width), FeedForward(width, p), nn.Dropout(p)

    def forward(self, x, mask):
        out = self.norm1(x)
        x = x + self.dropout(self.self_attn(out, out, mask))
        return x + self.dropout(self.feed_forward(self.norm2(x)))


class DecoderLayer(nn.Module):
    def __init__(self, width, heads, p):
        super().__init__()
        self.norm1, self.self_attn = nn.LayerNorm(width), Attention(width, heads)
        self.norm2, self.cross_attn = nn.LayerNorm(width), Attention(width, heads)
        self.norm3, self.feed_forward, self.dropout = nn.LayerNorm(width), FeedForward(width, p), nn.Dropout(p)

    def forward(self, x, memory, mask):
        out = self.norm1(x)
        x = x + self.dropout(self.self_attn(out, out, causal=True))
        x = x + self.dropout(self.cross_attn(self.norm2(x), memory, mask))
        return x + self.dropout(self.feed_forward(self.norm3(x)))


class Translator(nn.Module):
    def __init__(self, vocabulary=32000, width=512, heads=8, layers=3, positions=1024, p=0.1):
        super().__init__()
        self.embedding, self.position = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.encoder = nn.ModuleList(EncoderLayer(width, heads, p) for _ in range(layers))
        self.decoder = nn.ModuleList(DecoderLayer(width, heads, p) for _ in range(layers))
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout, self.head = nn.Dropout(p), nn.Linear(width, vocabulary)

    def embed(self, ids):
        positions = torch.arange(ids.shape[1], device=ids.device)
        return self.dropout(self.embedding(ids) + self.position(positions))

    def forward(self, input_ids, attention_mask, decoder_input_ids):
        mask = attention_mask[:, None, None, :]
        memory = self.embed(input_ids)
        for layer in self.encoder:
            memory = layer(memory, mask)
        memory = self.encoder_norm(memory)
        x = self.embed(decoder_input_ids)
        for layer in self.decoder:
            x = layer(x, memory, mask)
        return self.head(self.decoder_norm(x))


def translator():
    inputs = {
        "input_ids": torch.randint(0, 32000, (2, 64)),
        "attention_mask": torch.ones(2, 64, dtype=torch.bool),
        "decoder_input_ids": torch.randint(0, 32000, (2, 48)),
    }
    axes = {name: {0: "batch", 1: "sequence"} for name in inputs}
    axes["decoder_input_ids"][1] = "decoder_sequence"
    return Translator(), inputs, axes
