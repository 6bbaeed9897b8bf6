"""Draws boxes and arrows as SVG, readable on a light and on a dark page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

FILLS = {"main": "#3454d1", "side": "#4a5568", "aws": "#b7560f", "good": "#1c7c54"}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
LINE = 17
CHIP = 25
LINES = ("#0b84c6", "#d08700", "#009e73", "#c0609a", "#8a7ad0")
#: Colors that a dark page changes, as variables of CSS.
STYLE = """
svg { --quiet: #5a6472; --panel: #ffffff; --ink: #1a1f27; --grid: #dfe3e8; }
@media (prefers-color-scheme: dark) {
  svg { --quiet: #a0aab8; --panel: #16202e; --ink: #e4e8ee; --grid: #33415c; }
}
"""
QUIET, PANEL, INK, GRID = (f"var(--{name})" for name in ("quiet", "panel", "ink", "grid"))


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a chart. Without values, only its name is written;
    ``top`` is the value at the upper edge.
    """

    name: str
    values: Sequence[float] | None
    top: float


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

    def band(
        self, y: float, title: str, note: str, names: Sequence[str], *, fill: str = "main"
    ) -> float:
        """Draw a wide box with a bold title, a line below it and a small box for each name.

        Returns:
            The y of the box's lower edge.
        """
        rows = _rows(names, self.width - 32)
        height = 50 + CHIP * len(rows)
        self._parts.append(
            f'<rect x="4" y="{y:g}" width="{self.width - 8}" height="{height}" rx="6" '
            f'fill="{FILLS[fill]}"/>'
        )
        self._text(16, y + 19, title, "#fff", anchor="start", bold=True)
        self._text(16, y + 36, note, "#fff", anchor="start", size=12)
        for number, row in enumerate(rows):
            x, top = 16.0, y + 44 + CHIP * number
            for name in row:
                width = _chip_width(name)
                self._parts.append(
                    f'<rect x="{x:g}" y="{top:g}" width="{width:g}" height="{CHIP - 5}" rx="4" '
                    'fill="none" stroke="#fff" stroke-opacity="0.6"/>'
                )
                self._text(x + width / 2, top + 14, name, "#fff", size=12)
                x += width + 6
        self._grow(y + height)
        return y + height

    def chart(
        self,
        place: tuple[float, float, float, float],
        title: str,
        lines: Sequence[Line],
        marks: Sequence[tuple[str, float]] = (),
    ) -> None:
        """Draw a panel of a dashboard: its lines, and horizontal lines at marked values; names are
        below.

        ``place`` is x, y, width and height. The axis on the left has the top of the first line, and
        the one on the right that of the first line with another top.
        """
        x, y, width, height = place
        box = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4"'
        self._parts.append(f'<rect {box} style="fill: {PANEL}; stroke: {GRID}"/>')
        self._text(x + 10, y + 18, title, INK, anchor="start", size=13, bold=True)
        rows = (len(lines) + 1) // 2
        left, right, top, bottom = x + 40, x + width - 40, y + 36, y + height - 14 - LINE * rows
        tops = list(dict.fromkeys(each.top for each in lines if each.values))
        self._axes((left, right, top, bottom), tops)
        for name, value in marks:
            level = bottom - value / (tops[0] if tops else value) * (bottom - top)
            style = f'style="stroke: {QUIET}" stroke-dasharray="4 3"'
            self._parts.append(f'<path d="M{left:g},{level:.1f} H{right:g}" {style}/>')
            self._text(right - 2, level - 3, name, QUIET, anchor="end", size=10)
        for index, line in enumerate(lines):
            color = LINES[index % len(LINES)] if line.values else GRID
            if line.values:
                step, scale = (
                    (right - left) / (len(line.values) - 1),
                    (bottom - top) / (line.top or 1),
                )
                points = " ".join(
                    f"{left + step * at:.1f},{bottom - scale * value:.1f}"
                    for at, value in enumerate(line.values)
                )
                self._parts.append(
                    f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.6"/>'
                )
            row, column = divmod(index, 2)
            at, low = x + 10 + column * (width / 2 - 8), y + height - LINE * (rows - row) + 6
            self._parts.append(
                f'<path d="M{at:g},{low - 4:g} h12" style="stroke: {color}" stroke-width="3"/>'
            )
            self._text(
                at + 17, low, line.name, INK if line.values else QUIET, anchor="start", size=11
            )
        self._grow(y + height)

    def _axes(self, place: tuple[float, float, float, float], tops: Sequence[float]) -> None:
        left, right, top, bottom = place
        for part in (0, 0.5, 1):
            level = bottom - part * (bottom - top)
            self._parts.append(f'<path d="M{left:g},{level:g} H{right:g}" style="stroke: {GRID}"/>')
            for value, at, anchor in zip(
                tops, (left - 4, right + 4), ("end", "start"), strict=False
            ):
                self._text(
                    at,
                    level + 4,
                    f"{value * part:,.{0 if value > 9 else 1}f}",
                    QUIET,
                    anchor=anchor,
                    size=10,
                )

    def arrow(self, start: tuple[float, float], end: tuple[float, float], label: str = "") -> None:
        """Draw an arrow, with a label to the right of its middle."""
        (x1, y1), (x2, y2) = start, end
        self._parts.append(
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" style="stroke: {QUIET}" '
            'stroke-width="2" marker-end="url(#head)"/>'
        )
        if label:
            self._text((x1 + x2) / 2 + 14, (y1 + y2) / 2 + 4, label, QUIET, size=12, anchor="start")
        self._grow(y2)

    def label(
        self, x: float, y: float, text: str, *, anchor: str = "start", size: int = 12
    ) -> None:
        """Write a line of text beside the boxes."""
        self._text(x, y, text, QUIET, size=size, anchor=anchor)
        self._grow(y + 6)

    def svg(self) -> str:
        """Return the file's content."""
        height = self.height + 6
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {height:g}" '
                f'width="{self.width}" role="img" font-family="{FONT}">',
                f"<title>{escape(self._title)}</title>",
                f"<style>{STYLE}</style>",
                (
                    '<defs><marker id="head" markerWidth="9" markerHeight="8" refX="8" refY="4" '
                    'orient="auto"><path d="M0,0 L9,4 L0,8 z" style="fill: '
                    f'{QUIET}"/></marker></defs>'
                ),
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
            f'style="fill: {color}"{weight}>{escape(text)}</text>'
        )

    def _grow(self, y: float) -> None:
        self.height = max(self.height, int(y))
