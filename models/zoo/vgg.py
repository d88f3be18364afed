"""A plain convolutional network: VGG-16, configuration D."""

import torch
from torch import nn

CHANNELS = (64, 64, None, 128, 128, None, 256, 256, 256, None, 512, 512, 512, None, 512, 512, 512, None)


class VGG(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        layers, before = [], 3
        for channels in CHANNELS:
            if channels is None:
                layers.append(nn.MaxPool2d(2))
            else:
                layers += [nn.Conv2d(before, channels, 3, padding=1), nn.ReLU(inplace=True)]
                before = channels
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(7)
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096), nn.ReLU(inplace=True), nn.Dropout(),
            nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Dropout(),
            nn.Linear(4096, classes),
        )

    def forward(self, x):
        x = self.features(x)
        x = self.avgpool(x)
        x = torch.flatten(x, 1)
        return self.classifier(x)


def vgg16():
    return VGG(), {"x": torch.randn(2, 3, 224, 224)}
