"""Draws pictures for the small network: one object in one of ten colours on noise; needs Pillow.

``python pictures.py FILE.jpg`` writes the one that the examples send: a blue ring in row 3, column
8.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
from network import COLOURS, COLUMNS, ROWS
from PIL import Image, ImageDraw

SIDE = 480
_RGB = {
    "red": (205, 30, 35),
    "orange": (240, 135, 20),
    "yellow": (245, 225, 40),
    "green": (40, 150, 60),
    "cyan": (40, 205, 215),
    "blue": (35, 70, 200),
    "purple": (125, 40, 160),
    "pink": (245, 140, 190),
    "brown": (110, 65, 30),
    "white": (250, 250, 250),
}


def picture(class_index: int | None, random: np.random.RandomState) -> Image.Image:
    """Draw a picture of a class from 0 to 999, or of the background for ``None``."""
    image = _ground(random)
    if class_index is None:
        return image
    colour, place = divmod(class_index, ROWS * COLUMNS)
    row, column = divmod(place, COLUMNS)
    y, x = ((np.array([row, column]) + random.uniform(0.35, 0.65, 2)) * SIDE / ROWS).tolist()
    _draw(ImageDraw.Draw(image), x, y, random, _RGB[COLOURS[colour]])
    return image


def jpeg(image: Image.Image, quality: int = 90) -> bytes:
    """Encode the picture as a JPEG file."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    return file.getvalue()


def _ground(random: np.random.RandomState) -> Image.Image:
    """Draw soft grey clouds with noise."""
    clouds = Image.fromarray(random.randint(70, 110, (6, 6)).astype(np.uint8)).resize((SIDE, SIDE))
    grain = random.normal(0, 6, (SIDE, SIDE, 1))
    pixels = np.asarray(clouds, np.float64)[:, :, None] + grain
    return Image.fromarray(np.clip(np.repeat(pixels, 3, axis=2), 0, 255).astype(np.uint8))


def _draw(
    draw: ImageDraw.ImageDraw,
    x: float,
    y: float,
    random: np.random.RandomState,
    rgb: tuple[int, int, int],
) -> None:
    """Draw a disc, a ring, a square or a triangle."""
    radius = SIDE * random.uniform(0.05, 0.07)
    box = (x - radius, y - radius, x + radius, y + radius)
    kind = random.randint(4)
    if kind == 0:
        draw.ellipse(box, fill=rgb)
    elif kind == 1:
        draw.ellipse(box, outline=rgb, width=int(radius * 0.6))
    elif kind == 2:
        draw.rectangle(box, fill=rgb)
    else:
        draw.regular_polygon((x, y, radius * 1.2), 3, rotation=int(random.randint(360)), fill=rgb)


def main(path: Path) -> None:
    """Write the picture that the examples send."""
    class_index = COLOURS.index("blue") * ROWS * COLUMNS + 2 * COLUMNS + 7
    path.write_bytes(jpeg(picture(class_index, np.random.RandomState(5))))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
