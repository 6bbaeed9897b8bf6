"""The moving picture of the README and the start page is small, accessible and up to date."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

import pytest
from documentation.moving_picture import COLUMNS, PROMPT, Step, moving_picture
from documentation.recording import PICTURE, TITLE, recorded

MOST_BYTES = 400_000
SMALLEST_TEXT = 12
WIDTH_OF_README = 830
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def steps() -> list[Step]:
    """The commands of the picture, run now, with what they print."""
    return recorded()


@pytest.fixture(scope="module")
def picture() -> ElementTree.Element:
    """The committed picture. Reading it fails if it is not well-formed XML."""
    return ElementTree.parse(PICTURE).getroot()


def _lines(picture: ElementTree.Element) -> list[str]:
    return ["".join(text.itertext()) for text in picture.iter(f"{SVG}text")]


def _printed(steps: Sequence[Step]) -> list[str]:
    lines = []
    for step in steps:
        lines.append(PROMPT + step.command)
        lines += [line.text for line in step.lines]
    return lines


def test_shows_what_the_commands_print_today(
    picture: ElementTree.Element, steps: list[Step]
) -> None:
    """The lines of the picture are those of the commands; `make recording` writes it again."""
    assert _lines(picture) == _printed(steps)


def test_was_written_by_this_code(steps: list[Step]) -> None:
    """The committed picture is the one that `make recording` writes."""
    assert PICTURE.read_text(encoding="utf-8") == moving_picture(steps, TITLE)


def test_tells_the_error_without_colors(picture: ElementTree.Element) -> None:
    """A caret is below the wrong value, and the words name the error, the hint and the fix."""
    lines = _lines(picture)
    (marked,) = (number for number, line in enumerate(lines) if line.strip() == "^")
    assert lines[marked - 1].index("FP32") == lines[marked].index("^")

    text = "\n".join(lines)
    for words in ("error[text-enum]", "hint: did you mean TYPE_FP32?", "fixed 1 problem"):
        assert words in text


def test_is_small() -> None:
    """The picture has at most 400 kB, so that a slow connection shows it soon."""
    assert PICTURE.stat().st_size <= MOST_BYTES


def test_is_described_for_screen_readers(picture: ElementTree.Element) -> None:
    """The picture names its title and its description, and both have a text."""
    described_by = picture.attrib["aria-labelledby"].split()
    elements = [picture.find(f"{SVG}title"), picture.find(f"{SVG}desc")]
    found = [element for element in elements if element is not None and element.text]
    assert picture.attrib["role"] == "img"
    assert [element.attrib["id"] for element in found] == described_by


def test_asks_no_other_host(picture: ElementTree.Element) -> None:
    """The picture has no script, no link and no font of another host."""
    content = PICTURE.read_text(encoding="utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert re.findall(r"https?:|url\(|@import|@font-face|href", content) == []
    assert list(picture.iter(f"{SVG}script")) == []


def test_text_is_large_enough_in_the_readme(picture: ElementTree.Element) -> None:
    """The text has at least 12 pixels in GitHub's README, and no line is cut."""
    scale = min(1, WIDTH_OF_README / float(picture.attrib["width"]))
    assert scale * float(picture.attrib["font-size"]) >= SMALLEST_TEXT
    assert [line for line in _lines(picture) if len(line) > COLUMNS] == []


def test_moves_only_where_motion_is_welcome(picture: ElementTree.Element) -> None:
    """Without motion the last frame is shown: only the rules of animations hide lines."""
    style = picture.findtext(f"{SVG}style") or ""
    still, _, moving = style.partition("@media (prefers-reduced-motion: no-preference)")
    assert "animation" not in still
    assert "opacity" not in still
    assert "@keyframes" in moving


def test_lasts_ten_to_fifteen_seconds(picture: ElementTree.Element) -> None:
    """All animations have the same duration, so that they begin again together."""
    style = picture.findtext(f"{SVG}style") or ""
    (duration,) = set(re.findall(r"([\d.]+)s step-end infinite", style))
    assert 10 <= float(duration) <= 15
