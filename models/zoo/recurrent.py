"""Recurrent networks: a two-layer LSTM language model, and a bidirectional GRU classifier."""

import torch
from torch import nn


class LSTMLanguageModel(nn.Module):
    def __init__(self, vocabulary=33278, width=650, layers=2, p=0.5):
        super().__init__()
        self.embedding, self.dropout = nn.Embedding(vocabulary, width), nn.Dropout(p)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        self.head = nn.Linear(width, vocabulary)
        self.head.weight = self.embedding.weight

    def forward(self, input_ids):
        x = self.dropout(self.embedding(input_ids))
        x, _ = self.lstm(x)
        return self.head(self.dropout(x))


class GRUClassifier(nn.Module):
    def __init__(self, features=80, width=512, layers=3, classes=35):
        super().__init__()
        self.conv = nn.Conv1d(features, width, 5, stride=2, padding=2)
        self.gru = nn.GRU(width, width, layers, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, classes)

    def forward(self, x):
        x = torch.relu(self.conv(x)).transpose(1, 2)
        x, _ = self.gru(x)
        return self.head(x.mean(1))


def lstm_lm():
    return LSTMLanguageModel(), {"input_ids": torch.randint(0, 33278, (2, 64))}


def gru_speech():
    return GRUClassifier(), {"x": torch.randn(2, 80, 200)}, {"x": {0: "batch"}}
