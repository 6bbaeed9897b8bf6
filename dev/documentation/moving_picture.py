"""Draws the recording of a terminal as one animated SVG, without scripts and without fonts.

The animation is CSS, which browsers also run in an ``<img>``. Without animation, the picture shows
the last frame: all commands and all that they printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby

#: Columns of the terminal. With more, the text is too small to read on a phone.
COLUMNS = 56
PROMPT = "$ "
SIZE = 16
LINE = 22
#: The widest of the fonts below is SF Mono: a character is 0.62 times as wide as the font is high.
CELL = 0.62 * SIZE
PADDING = 12
GAP = 8
FONTS = (
    "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', "
    "monospace"
)

TYPING_SECONDS = 0.02
"""Seconds between two characters of a command."""
RUNNING_SECONDS = 0.4
"""Seconds between a command and what it prints."""
READING_SECONDS = 0.4
"""Seconds for each printed line, before the next command."""
LAST_SECONDS = 3.0
"""Seconds of the last frame, added to the time to read its lines."""

STYLE = """
svg { --panel: #f3f5f8; --ink: #1a1f27; --dim: #57606c; --red: #b3202c; }
@media (prefers-color-scheme: dark) {
  svg { --panel: #16202e; --ink: #e4e8ee; --dim: #a0aab8; --red: #ff8f8f; }
}
.panel, .cover { fill: var(--panel); }
.cover { transform: scaleX(0); }
text { fill: var(--ink); white-space: pre; }
.bold { font-weight: bold; }
.dim { fill: var(--dim); }
.red { fill: var(--red); }
"""


@dataclass(frozen=True, slots=True)
class Line:
    """A printed line. ``styles`` has the classes of each character, such as ``bold red``."""

    text: str
    styles: Sequence[str]


@dataclass(frozen=True, slots=True)
class Step:
    """A command, and the lines that it printed."""

    command: str
    lines: Sequence[Line]


def moving_picture(steps: Sequence[Step], title: str) -> str:
    """Return an SVG in which the commands are typed, one after the other."""
    picture = _MovingPicture()
    for step in steps:
        picture.add(step)

    commands = ", ".join(step.command for step in steps)
    return picture.svg(title, f"A terminal runs these commands and shows their output: {commands}")


@dataclass(slots=True)
class _MovingPicture:
    width: int = 2 * PADDING + round(COLUMNS * CELL)
    bottom: float = PADDING
    seconds: float = 0
    parts: list[str] = field(default_factory=list)
    #: Each animation: its name, and its keyframes with seconds in place of percentages.
    animations: list[tuple[str, list[tuple[float, str]]]] = field(default_factory=list)

    def add(self, step: Step) -> None:
        """Type a command below the others, and then show what it prints."""
        if self.parts:
            self.bottom += GAP

        self._show("command", [Line(PROMPT + step.command, ["bold"] * COLUMNS)])
        self._type(step.command)
        self.seconds += RUNNING_SECONDS

        self._show("output", step.lines)
        self.seconds += READING_SECONDS * len(step.lines)

    def svg(self, title: str, description: str) -> str:
        """Return the file's content."""
        seconds = self.seconds + LAST_SECONDS
        height = self.bottom + PADDING
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {height:g}" '
                f'width="{self.width}" height="{height:g}" role="img" '
                'aria-labelledby="title description" xml:space="preserve" '
                f'font-family="{FONTS}" font-size="{SIZE}">',
                f'<title id="title">{escape(title)}</title>',
                f'<desc id="description">{escape(description)}</desc>',
                f"<style>{STYLE}{self._animation(seconds)}</style>",
                '<rect class="panel" width="100%" height="100%" rx="6"/>',
                *self.parts,
                "</svg>\n",
            ]
        )

    def _show(self, name: str, lines: Sequence[Line]) -> None:
        """Let lines appear now, below what the picture contains."""
        animation = self._named(name)
        self.parts.append(f'<g class="{animation}">')
        for line in lines:
            self.bottom += LINE
            baseline = self.bottom - 0.3 * LINE
            self.parts.append(f'<text x="{PADDING}" y="{baseline:g}">{_marked(line)}</text>')
        self.parts.append("</g>")

        keyframes = [(0, "opacity: 0"), (self.seconds, "opacity: 1")]
        self.animations.append((animation, keyframes))

    def _type(self, command: str) -> None:
        """Cover the command with a rectangle that becomes narrower with each character."""
        animation = self._named("cover")
        # The rectangle begins in the middle of the space after the prompt, so that it covers no
        # part of either where a font is narrower.
        left = PADDING + 1.5 * CELL
        right = self.width - PADDING
        characters = round((right - left) / CELL)
        self.parts.append(
            f'<rect class="cover {animation}" x="{left:g}" y="{self.bottom - LINE:g}" '
            f'width="{right - left:g}" height="{LINE}" style="transform-origin: {right:g}px 0"/>'
        )

        start = self.seconds
        self.seconds += TYPING_SECONDS * len(command)
        # The rectangle is as long as the line: it also moves behind the end of a short command.
        end = start + TYPING_SECONDS * characters
        typing = f"transform: scaleX(1); animation-timing-function: steps({characters})"
        keyframes = [(0, "transform: scaleX(1)"), (start, typing), (end, "transform: scaleX(0)")]
        self.animations.append((animation, keyframes))

    def _named(self, kind: str) -> str:
        return f"{kind}-{len(self.animations)}"

    def _animation(self, seconds: float) -> str:
        """Return the rules of all animations, for readers who have not asked for less motion."""
        rules = []
        for name, keyframes in self.animations:
            frames = [f"{100 * at / seconds:.2f}% {{ {values} }}" for at, values in keyframes]
            rules.append(f"@keyframes {name} {{ {' '.join(frames)} }}")
            rules.append(f".{name} {{ animation: {name} {seconds:.2f}s step-end infinite; }}")
        return "\n".join(["@media (prefers-reduced-motion: no-preference) {", *rules, "}\n"])


def _marked(line: Line) -> str:
    """Return the text of a line, in which each part with a style is an element."""
    marked = ""
    for style, characters in groupby(
        zip(line.text, line.styles, strict=False), key=lambda pair: pair[1]
    ):
        text = escape("".join(character for character, _ in characters), quote=False)
        marked += f'<tspan class="{style}">{text}</tspan>' if style else text
    return marked
