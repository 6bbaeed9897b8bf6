"""Converts a JPEG file to the pixels of ResNet-50 and of Inception v3; needs Pillow."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

# torchvision documentation, ResNet50_Weights.IMAGENET1K_V1: mean and standard deviation by channel.
_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
_STANDARD_DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)


def resnet_pixels(jpeg: bytes) -> np.ndarray:
    """Return FP32 [3, 224, 224]: channels first, each with mean 0 and deviation 1 over ImageNet."""
    return np.ascontiguousarray(imagenet_pixels(jpeg, 224).transpose(2, 0, 1))


def imagenet_pixels(jpeg: bytes, side: int) -> np.ndarray:
    """Return FP32 [side, side, 3], each channel with mean 0 and deviation 1 over ImageNet."""
    pixels = _resized(jpeg, side) / np.float32(255)
    return (pixels - _MEAN) / _STANDARD_DEVIATION


def inception_pixels(jpeg: bytes) -> np.ndarray:
    """Return FP32 [299, 299, 3] from -1 to 1, as ``crop_mirror_normalize`` in ``make_dali.py``."""
    return (_resized(jpeg, 299) - np.float32(127.5)) / np.float32(127.5)


def _resized(jpeg: bytes, side: int) -> np.ndarray:
    with Image.open(io.BytesIO(jpeg)) as image:
        return np.asarray(image.convert("RGB").resize((side, side), Image.Resampling.BILINEAR), np.float32)
