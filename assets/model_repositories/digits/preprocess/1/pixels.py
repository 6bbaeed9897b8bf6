"""From a PNG file to what the network reads: grey, 8 x 8, 0 to 1, light strokes on a dark ground."""

import numpy as np
from png_decoder import decode_png

SIDE = 8
# Luma of ITU-R BT.601 in thousandths, as most greyscale conversions have it.
LUMA = np.array([299, 587, 114], np.float64) / 1000


def pixels_of(png: bytes) -> np.ndarray:
    """Return float32 [1, 8, 8] from 0 (dark) to 1 (light) for a PNG file of any size.

    Raises png_decoder.PngError when the bytes are not an image that the decoder reads.
    """
    image = resize(grey(decode_png(png)), SIDE, SIDE) / 255
    return image.astype(np.float32)[np.newaxis]


def grey(image: np.ndarray) -> np.ndarray:
    """Return float64 [height, width], 0 to 255, of uint8 [height, width, channels].

    Transparent pixels turn dark: the network learned light digits on a dark ground.
    """
    channels = image.shape[-1]
    color = image[..., :3] @ LUMA if channels >= 3 else image[..., 0].astype(np.float64)
    return color * (image[..., -1] / 255.0) if channels in {2, 4} else color


def resize(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return the image at [height, width], each new pixel the mean of the area it covers.

    An image that already has the size comes back unchanged, to the last bit.
    """
    return coverage(image.shape[0], height) @ image @ coverage(image.shape[1], width).T


def coverage(old: int, new: int) -> np.ndarray:
    """Return float64 [new, old]: the share of each new pixel that each old pixel fills; rows sum to 1."""
    edges = np.arange(new + 1) * (old / new)
    start, stop = edges[:-1, np.newaxis], edges[1:, np.newaxis]
    cells = np.arange(old)
    overlap = np.minimum(stop, cells + 1) - np.maximum(start, cells)
    return np.clip(overlap, 0, None) / (old / new)
