"""Handwritten digits, split into images for training and held-out images.

The hash of an image decides: a fifth of all possible images is held out. So the split does not
depend on the order of the images or on a random generator, and two equal images are always on the
same side.

``digits.csv.gz`` is the test set of the UCI data set "Optical Recognition of Handwritten Digits"
(E. Alpaydin, C. Kaynak, 1998; CC BY 4.0), in the file that scikit-learn contains. Each of 1797
lines has the 8 x 8 pixels of an image, from 0 to 16, and its digit.
"""

import functools
import hashlib
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# First byte of the SHA-256 of an image's 64 pixels: 51 of 256 values, a fifth, are held out.
HELD_OUT_BELOW = 51


def held_out_images() -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the images never trained on, uint8 [n, 8, 8] from 0 to 255, and
    their digits, int64 [n].
    """
    images, labels = _digits()
    chosen = np.array([holds_out(image) for image in images])
    return images[chosen], labels[chosen]


def training_images() -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the other images and their digits, with the dtypes of held_out_images."""
    images, labels = _digits()
    chosen = np.array([not holds_out(image) for image in images])
    return images[chosen], labels[chosen]


def holds_out(image: NDArray[Any]) -> bool:
    """Return whether this image, uint8 [8, 8], must not be trained on."""
    return hashlib.sha256(image.tobytes()).digest()[0] < HELD_OUT_BELOW


def encode_png(image: NDArray[Any]) -> bytes:
    """Return the PNG file of a greyscale image, uint8 [height, width]."""
    height, width = image.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    unfiltered = np.pad(image.astype(np.uint8, casting="safe"), ((0, 0), (1, 0)))
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(unfiltered.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


@functools.cache
def _digits() -> tuple[NDArray[Any], NDArray[Any]]:
    table = np.loadtxt(Path(__file__).with_name("digits.csv.gz"), delimiter=",")
    pixels, digits = table[:, :-1], table[:, -1]
    images = np.rint(pixels.reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    return images, digits.astype(np.int64)
