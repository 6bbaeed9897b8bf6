"""ResNet-50 in PyTorch, with the parameter names of torchvision, so that its published weights can
be loaded.

Needs only torch: torchvision from PyPI is built for CUDA and does not import beside a PyTorch for
the CPU.
"""

from __future__ import annotations

import torch
from torch import nn

WEIGHTS = "https://download.pytorch.org/models/resnet50-0676ba61.pth"
"""torchvision's ``ResNet50_Weights.IMAGENET1K_V1``."""
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
"""Width, number of blocks and stride of each stage."""


class Bottleneck(nn.Module):
    """A residual block: 1x1, 3x3 and 1x1 convolutions, the last with four times the width."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        if stride != 1 or channels != 4 * width:
            shortcut = nn.Conv2d(channels, 4 * width, 1, stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(4 * width))

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        inner = torch.relu(self.bn1(self.conv1(maps)))
        inner = torch.relu(self.bn2(self.conv2(inner)))
        shortcut = self.downsample(maps) if hasattr(self, "downsample") else maps
        return torch.relu(self.bn3(self.conv3(inner)) + shortcut)


class ResNet50(nn.Module):
    """FP32 [n, 3, 224, 224] to scores of 1,000 classes, FP32 [n, 1000]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, padding=3, bias=False), nn.BatchNorm2d(64)
        channels = 64
        for number, (width, count, stride) in enumerate(STAGES, start=1):
            blocks = [Bottleneck(channels, width, stride)]
            channels = 4 * width
            blocks += [Bottleneck(channels, width, 1) for _ in range(count - 1)]
            self.add_module(f"layer{number}", nn.Sequential(*blocks))
        self.fc = nn.Linear(channels, 1000)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        maps = torch.relu(self.bn1(self.conv1(pixels)))
        maps = torch.max_pool2d(maps, 3, 2, padding=1)
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            maps = stage(maps)
        return self.fc(maps.mean((2, 3)))


def load(*, random: bool) -> ResNet50:
    """Return the network with the published weights, or with random ones."""
    torch.manual_seed(0)
    network = ResNet50()
    if not random:
        network.load_state_dict(torch.hub.load_state_dict_from_url(WEIGHTS))
    return network.eval()
