"""Decode the PNG files that scanners, drawing pads and image libraries write by default.

Covered: 8 bits a channel, greyscale or RGB, with or without alpha, not interlaced, all five row
filters. NumPy and zlib suffice for that, so the model runs in any image that carries the Python
backend. Source of the format: W3C, Portable Network Graphics (PNG) Specification.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Colour type of the header -> channels a pixel. 3 is the palette, which is not covered.
CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
# Rows under the Average and Paeth filters are decoded byte by byte; this bounds the time they take,
# and what a few hostile bytes can inflate to.
MAX_PIXELS = 4 * 1024 * 1024


class PngError(ValueError):
    """The bytes are not a PNG image that this decoder reads; the message says why."""


class Header(NamedTuple):
    """What the IHDR chunk says, in its order."""

    width: int
    height: int
    bit_depth: int
    color_type: int
    compression: int
    filter_method: int
    interlace: int

    @property
    def channels(self) -> int:
        """Bytes a pixel: one for each channel."""
        return CHANNELS[self.color_type]


def decode_png(data: bytes) -> np.ndarray:
    """Return the image as uint8 [height, width, channels].

    channels is 1 (grey), 2 (grey, alpha), 3 (RGB) or 4 (RGB, alpha). Raises PngError.
    """
    header: Header | None = None
    compressed = []
    for kind, content in _chunks(data):
        if kind == b"IHDR":
            header = _header(content)
        elif kind == b"IDAT":
            compressed.append(content)
    if header is None:
        raise PngError("the IHDR chunk is missing")
    return _unfilter(_inflate(b"".join(compressed), header), header)


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield (type, content) of each chunk up to IEND, each checked against its CRC."""
    if not data.startswith(SIGNATURE):
        raise PngError(f"the PNG signature is missing, the data begins with {bytes(data[:8])!r}")
    position = len(SIGNATURE)
    while True:
        if position + 12 > len(data):
            raise PngError("the data ends before the IEND chunk")
        length, kind = struct.unpack_from(">I4s", data, position)
        end = position + 8 + length
        if end + 4 > len(data):
            raise PngError(f"the data ends inside the {kind!r} chunk")
        if zlib.crc32(data[position + 4 : end]) != struct.unpack_from(">I", data, end)[0]:
            raise PngError(f"the checksum of the {kind!r} chunk is wrong")
        if kind == b"IEND":
            return
        yield kind, data[position + 8 : end]
        position = end + 4


def _header(content: bytes) -> Header:
    if len(content) != 13:
        raise PngError(f"the IHDR chunk must hold 13 bytes, got {len(content)}")
    header = Header(*struct.unpack(">IIBBBBB", content))
    if not 0 < header.width * header.height <= MAX_PIXELS:
        raise PngError(f"an image must have 1 to {MAX_PIXELS} pixels, got {header.width} x {header.height}")
    if header.color_type not in CHANNELS:
        raise PngError(f"color type must be 0, 2, 4 or 6, got {header.color_type}; save without a palette")
    if header.bit_depth != 8:
        raise PngError(f"bit depth must be 8, got {header.bit_depth}; save with 8 bits a channel")
    if header.compression or header.filter_method:
        raise PngError("compression and filter method must be 0")
    if header.interlace:
        raise PngError("interlaced images are not read; save without interlacing")
    return header


def _inflate(compressed: bytes, header: Header) -> np.ndarray:
    """Return the rows, filter byte first: uint8 [height, 1 + width * channels]."""
    stride = 1 + header.width * header.channels
    expected = stride * header.height
    try:
        # The limit keeps a small file from inflating without bound; one byte more shows excess.
        raw = zlib.decompressobj().decompress(compressed, expected + 1)
    except zlib.error as error:
        raise PngError(f"the image data cannot be inflated: {error}") from None
    if len(raw) != expected:
        comparison = "more" if len(raw) > expected else "fewer"
        raise PngError(f"the image data holds {comparison} than the {expected} bytes its header announces")
    return np.frombuffer(raw, np.uint8).reshape(header.height, stride)


def _unfilter(rows: np.ndarray, header: Header) -> np.ndarray:
    pixels = np.empty((header.height, header.width, header.channels), np.uint8)
    above = np.zeros((header.width, header.channels), np.uint8)
    for index, row in enumerate(rows):
        kind = int(row[0])
        if kind >= len(_FILTERS):
            raise PngError(f"row {index} has the unknown filter {kind}")
        above = _FILTERS[kind](row[1:].reshape(above.shape), above)
        pixels[index] = above
    return pixels


# Each filter takes a filtered row and the decoded row above, both uint8 [width, channels], and
# returns the decoded row. Sums wrap at 256, as the specification asks.


def _none(row: np.ndarray, above: np.ndarray) -> np.ndarray:  # noqa: ARG001 - one signature for all filters
    return row


def _sub(row: np.ndarray, above: np.ndarray) -> np.ndarray:  # noqa: ARG001 - one signature for all filters
    return np.cumsum(row, axis=0, dtype=np.uint8)


def _up(row: np.ndarray, above: np.ndarray) -> np.ndarray:
    return row + above


def _average(row: np.ndarray, above: np.ndarray) -> np.ndarray:
    decoded = []
    for filtered, over in zip(row.T.tolist(), above.T.tolist(), strict=True):
        left = 0
        channel = []
        for value, up in zip(filtered, over, strict=True):
            left = (value + (left + up) // 2) & 255
            channel.append(left)
        decoded.append(channel)
    return np.array(decoded, np.uint8).T


def _paeth(row: np.ndarray, above: np.ndarray) -> np.ndarray:
    decoded = []
    for filtered, over in zip(row.T.tolist(), above.T.tolist(), strict=True):
        left = corner = 0
        channel = []
        for value, up in zip(filtered, over, strict=True):
            left = (value + _paeth_predictor(left, up, corner)) & 255
            corner = up
            channel.append(left)
        decoded.append(channel)
    return np.array(decoded, np.uint8).T


def _paeth_predictor(left: int, up: int, corner: int) -> int:
    """Return whichever neighbour is nearest to left + up - corner; ties prefer left, then up."""
    to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
    if to_left <= to_up and to_left <= to_corner:
        return left
    return up if to_up <= to_corner else corner


_FILTERS = (_none, _sub, _up, _average, _paeth)
