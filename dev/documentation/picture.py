"""Draws boxes and arrows as SVG, readable on a light and on a dark page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

FILLS = {"main": "#3454d1", "side": "#4a5568", "aws": "#b7560f", "good": "#1c7c54"}
GREY = "#7585a0"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
LINE = 17
CHIP = 25
LINES = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442")
POINTS = 40


def _invented(seed: int, x: float, width: float, bottom: float, height: float) -> str:
    """Return the points of a line that looks like a day of traffic; each seed has its own level."""
    level = 0.75 / (1 + 0.45 * seed)
    day = (math.sin(math.pi * at / POINTS) ** 2 for at in range(POINTS + 1))
    noise = (0.05 * math.sin(1.7 * at + 2.3 * seed) for at in range(POINTS + 1))
    heights = (max(0.0, level * (0.35 + 0.65 * each) + wave) for each, wave in zip(day, noise, strict=True))
    return " ".join(
        f"{x + width * at / POINTS:.1f},{bottom - height * share:.1f}" for at, share in enumerate(heights)
    )


def _chip_width(name: str) -> float:
    return 6.9 * len(name) + 14


def _rows(names: Sequence[str], width: float) -> list[list[str]]:
    """Return the names in rows that are at most as wide as given."""
    rows: list[list[str]] = [[]]
    for name in names:
        if rows[-1] and sum(_chip_width(each) + 6 for each in (*rows[-1], name)) > width:
            rows.append([])
        rows[-1].append(name)
    return rows


class Picture:
    """A picture of a fixed width; ``title`` is its description for screen readers."""

    def __init__(self, width: int, title: str) -> None:
        self.width = width
        self.height = 0
        self._title = title
        self._parts: list[str] = []

    def box(self, x: float, y: float, width: float, *text: str, fill: str = "main") -> float:
        """Draw a box with a bold title and lines below it, and return the y of its lower edge."""
        title, *lines = text
        height = 24 + LINE * len(lines) + (6 if lines else 4)
        self._parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{FILLS[fill]}"/>'
        )
        self._text(x + width / 2, y + 18, title, "#fff", bold=True)
        for number, line in enumerate(lines):
            self._text(x + width / 2, y + 36 + LINE * number, line, "#fff", size=12)
        self._grow(y + height)
        return y + height

    def band(self, y: float, title: str, note: str, names: Sequence[str], *, fill: str = "main") -> float:
        """Draw a wide box with a bold title, a line below it and a small box for each name.

        Returns:
            The y of the box's lower edge.
        """
        rows = _rows(names, self.width - 32)
        height = 50 + CHIP * len(rows)
        self._parts.append(
            f'<rect x="4" y="{y:g}" width="{self.width - 8}" height="{height}" rx="6" fill="{FILLS[fill]}"/>'
        )
        self._text(16, y + 19, title, "#fff", anchor="start", bold=True)
        self._text(16, y + 36, note, "#fff", anchor="start", size=12)
        for number, row in enumerate(rows):
            x, top = 16.0, y + 44 + CHIP * number
            for name in row:
                width = _chip_width(name)
                self._parts.append(
                    f'<rect x="{x:g}" y="{top:g}" width="{width:g}" height="{CHIP - 5}" rx="4" fill="none" '
                    'stroke="#fff" stroke-opacity="0.6"/>'
                )
                self._text(x + width / 2, top + 14, name, "#fff", size=12)
                x += width + 6
        self._grow(y + height)
        return y + height

    def chart(self, place: tuple[float, float, float, float], title: str, names: Sequence[str]) -> None:
        """Draw a panel of a dashboard: a line with invented values for each name, and the names below.

        ``place`` is x, y, width and height.
        """
        x, y, width, height = place
        is_rising = any(" p" in name for name in names)  # a higher percentile is a longer time
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" fill="#16202e" '
            f'stroke="{GREY}"/>'
        )
        self._text(x + 10, y + 18, title, "#fff", anchor="start", size=13, bold=True)
        rows = [names[start : start + 2] for start in range(0, len(names), 2)]
        bottom = y + height - 12 - LINE * len(rows)
        for part in (0, 0.5, 1):
            level = bottom - part * (bottom - y - 30)
            self._parts.append(
                f'<path d="M{x + 10:g},{level:g} h{width - 20:g}" stroke="#33415c" stroke-width="1"/>'
            )
        for index, name in enumerate(names):
            colour = LINES[index % len(LINES)]
            seed = len(names) - index if is_rising else index
            points = _invented(seed, x + 10, width - 20, bottom, bottom - y - 34)
            self._parts.append(
                f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
            )
            row, column = divmod(index, 2)
            left, line = x + 10 + column * (width / 2 - 8), y + height - LINE * (len(rows) - row) + 6
            self._parts.append(f'<path d="M{left:g},{line - 4:g} h12" stroke="{colour}" stroke-width="3"/>')
            self._text(left + 17, line, name, "#d7dfeb", anchor="start", size=11)
        self._grow(y + height)

    def arrow(self, start: tuple[float, float], end: tuple[float, float], label: str = "") -> None:
        """Draw an arrow, with a label to the right of its middle."""
        (x1, y1), (x2, y2) = start, end
        self._parts.append(
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{GREY}" stroke-width="2" '
            'marker-end="url(#head)"/>'
        )
        if label:
            self._text((x1 + x2) / 2 + 8, (y1 + y2) / 2 + 4, label, GREY, size=12, anchor="start")
        self._grow(y2)

    def label(self, x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> None:
        """Write a line of text beside the boxes."""
        self._text(x, y, text, GREY, size=size, anchor=anchor)
        self._grow(y + 6)

    def svg(self) -> str:
        """Return the file's content."""
        height = self.height + 6
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {height:g}" '
                f'width="{self.width}" role="img" font-family="{FONT}">',
                f"<title>{escape(self._title)}</title>",
                '<defs><marker id="head" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
                f'<path d="M0,0 L9,4 L0,8 z" fill="{GREY}"/></marker></defs>',
                *self._parts,
                "</svg>\n",
            ]
        )

    def _text(
        self,
        x: float,
        y: float,
        text: str,
        color: str,
        *,
        size: int = 14,
        anchor: str = "middle",
        bold: bool = False,
    ) -> None:
        weight = ' font-weight="600"' if bold else ""
        self._parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{color}"{weight}>{escape(text)}</text>'
        )

    def _grow(self, y: float) -> None:
        self.height = max(self.height, int(y))
