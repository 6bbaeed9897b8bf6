"""Draws boxes and arrows as SVG, readable on a light and on a dark page."""

from __future__ import annotations

from html import escape

FILLS = {"main": "#3454d1", "side": "#4a5568", "aws": "#b7560f", "good": "#1c7c54"}
GREY = "#7585a0"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
LINE = 17


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
