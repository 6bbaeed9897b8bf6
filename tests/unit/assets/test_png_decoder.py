"""The PNG decoder of the digits ensemble, with files encoded by the rules of the specification."""

import struct
import zlib
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from sample_files import load

COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}
Pixels = np.ndarray[Any, np.dtype[np.uint8]]


@pytest.fixture
def png() -> ModuleType:
    """The decoder's module."""
    return load("model_repositories/digits/preprocess/1/png_decoder.py")


def picture(channels: int, height: int = 7, width: int = 9) -> Pixels:
    """Return a noisy image in which every predictor,
    tie and overflow at 256 of the filters occurs.
    """
    return (
        np.random.RandomState(channels).randint(0, 256, (height, width, channels)).astype(np.uint8)
    )


def predicted(kind: int, left: int, up: int, corner: int) -> int:
    """Return the predictors of the specification."""
    if kind == 4:
        estimate = left + up - corner
        return min((left, up, corner), key=lambda value: abs(estimate - value))
    return (0, left, up, (left + up) // 2)[kind]


def filtered(image: Pixels, kinds: list[int]) -> bytes:
    """Return the rows of the image, each with the next filter, filter byte first."""
    height, width, channels = image.shape
    values = np.pad(image.astype(int), ((1, 0), (1, 0), (0, 0)))
    rows = bytearray()
    for y in range(height):
        kind = kinds[y % len(kinds)]
        rows.append(kind)
        for x in range(width):
            for c in range(channels):
                left, up, corner = values[y + 1, x, c], values[y, x + 1, c], values[y, x, c]
                rows.append((values[y + 1, x + 1, c] - predicted(kind, left, up, corner)) % 256)
    return bytes(rows)


def chunk(kind: bytes, content: bytes) -> bytes:
    """Return one chunk: length, type, content, CRC."""
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


def png_file(
    rows: bytes, size: tuple[int, int], color_type: int, depth: int = 8, interlace: int = 0
) -> bytes:
    """Return a PNG file of filtered rows, with a text chunk and its image data in two chunks."""
    header = struct.pack(">IIBBBBB", *size, depth, color_type, 0, 0, interlace)
    packed = zlib.compress(rows)
    parts = [
        (b"IHDR", header),
        (b"tEXt", b"Title\0x"),
        (b"IDAT", packed[:9]),
        (b"IDAT", packed[9:]),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


GREY = picture(1)
GREY_ROWS = filtered(GREY, [0])


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("kinds", [[0], [1], [2], [3], [4], [4, 3, 2, 1, 0]], ids=str)
def test_every_filter_and_colour_type_decodes_to_the_encoded_image(
    png: ModuleType, channels: int, kinds: list[int]
) -> None:
    """The decoded image equals the encoded one exactly, with every filter."""
    image = picture(channels)
    decoded = png.decode_png(png_file(filtered(image, kinds), (9, 7), COLOR_TYPES[channels]))
    assert decoded.dtype == np.uint8
    np.testing.assert_array_equal(decoded, image)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "signature is missing"),
        (b"\xff\xd8\xff\xe0JFIF", "signature is missing"),
        (png_file(GREY_ROWS, (9, 7), 0)[:-12], "ends before the IEND chunk"),
        (png_file(GREY_ROWS, (9, 7), 0)[:-20], "ends inside the b'IDAT' chunk"),
        (
            png_file(GREY_ROWS, (9, 7), 0).replace(b"Title", b"title"),
            "checksum of the b'tEXt' chunk",
        ),
        (b"\x89PNG\r\n\x1a\n" + chunk(b"IEND", b""), "IHDR chunk is missing"),
        (png_file(GREY_ROWS, (9, 7), 3), "color type must be 0, 2, 4 or 6, got 3"),
        (png_file(GREY_ROWS, (9, 7), 0, depth=16), "bit depth must be 8, got 16"),
        (png_file(GREY_ROWS, (9, 7), 0, interlace=1), "save without interlacing"),
        (png_file(GREY_ROWS, (0, 7), 0), "got 0 x 7"),
        (png_file(GREY_ROWS, (65536, 65536), 0), "got 65536 x 65536"),
        (png_file(GREY_ROWS, (9, 8), 0), "fewer than the 80 bytes"),
        (png_file(bytes(10**6), (9, 7), 0), "more than the 70 bytes"),
        (png_file(b"\5" + GREY_ROWS[1:], (9, 7), 0), "row 0 has the unknown filter 5"),
    ],
    ids=lambda value: value.replace("'", "") if isinstance(value, str) else "",
)
def test_what_is_not_read_is_refused_with_its_reason(
    png: ModuleType, data: bytes, complaint: str
) -> None:
    """Data that the decoder cannot read raises PngError with the reason."""
    with pytest.raises(png.PngError, match=complaint):
        png.decode_png(data)


def test_every_truncation_is_a_png_error(png: ModuleType) -> None:
    """A file that is cut off anywhere raises PngError."""
    data = png_file(GREY_ROWS, (9, 7), 0)
    for length in range(len(data)):
        with pytest.raises(png.PngError):
            png.decode_png(data[:length])
