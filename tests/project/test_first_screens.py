"""What a stranger sees first: the README, the start page and CONTRIBUTING."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from members import PROJECT

README, START = PROJECT / "README.md", PROJECT / "docs" / "index.md"
FIRST = [README, START]
#: The parts of both pages, in their order: what it is, the page, commands, an error, an app, and so
#: on.
PARTS = (
    "AWS CDK for Python",
    "<picture>",
    "$ pip install 'constructs-triton[local]'",
    "$ constructs-triton project new shop --example digits",
    "$ constructs-triton local up shop/models --ui",
    "error[text-enum]",
    "import aws_cdk as cdk",
    "**Run your template",
    "**Rehearse an update",
    "**Measure, then scale",
    "Nothing here has run in AWS or on a GPU.",
    "make account-check",
)
WIDEST = 84
NARROW = [*FIRST, PROJECT / "CONTRIBUTING.md"]


def name(page: Path) -> str:
    return page.name


def _seen(page: Path) -> str:
    """Return what a reader sees: the page without the commands that write its blocks."""
    return re.sub(r"<!--.*?-->", "", page.read_text(), flags=re.DOTALL)


def _blocks(text: str) -> list[str]:
    return re.findall(r"^```.*?^```$", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", FIRST, ids=name)
def test_parts_are_in_order(page: Path) -> None:
    """The page shows each part once at its place,
    and says honestly at the end what has not been tried.
    """
    text = _seen(page)
    places = [text.find(part) for part in PARTS]
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.parametrize("page", NARROW, ids=name)
def test_blocks_are_narrow(page: Path) -> None:
    """No line of a block is cut at the right edge of the site."""
    lines = [line for block in _blocks(_seen(page)) for line in block.splitlines()]
    assert [line for line in lines if len(line) > WIDEST] == []


def test_both_pages_show_the_same_app_and_error() -> None:
    """The blocks of the start page are those of the README."""
    assert _blocks(_seen(START)) == _blocks(_seen(README))


@pytest.mark.parametrize("page", FIRST, ids=name)
def test_pictures_exist_for_light_and_dark(page: Path) -> None:
    """The picture of the page in the browser has a file for each mode, and a text."""
    picture = re.search(r"<picture>(.*?)</picture>", _seen(page), re.DOTALL)
    assert picture is not None
    files = re.findall(r'src(?:set)?="([^"]+)"', picture[1])
    assert [Path(file).name for file in files] == ["page_dark_1440.png", "page_light_1440.png"]
    assert all((page.parent / file).is_file() for file in files)
    assert 'media="(prefers-color-scheme: dark)"' in picture[1]
    assert 'alt="' in picture[1]


def test_readme_says_which_python_each_part_needs() -> None:
    """The local server has fewer versions of Python than the rest; pyproject.toml says the same."""
    rows = dict(
        re.findall(
            r"^\| `pip install '?([\w[\]-]+)'?` \| ([^|]+?) \|", README.read_text(), re.MULTILINE
        )
    )
    assert rows["constructs-triton[local]"] == "3.11 or 3.12"
    assert rows["constructs-triton"] == "3.11 to 3.13"
    project = (PROJECT / "pyproject.toml").read_text()
    assert (
        "nvidia-pytriton>=0.7,<0.8; sys_platform == 'linux' and python_version < '3.13'" in project
    )
    assert "on Linux with Python 3.11 or 3.12" in README.read_text()
