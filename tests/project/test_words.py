"""Messages, docstrings and comments use ordinary words, and one word for one thing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
#: The word to write, and a pattern of what not to write in its place.
WORDS = {
    "fix": r"mend(s|ed|ing)?",
    "no, nothing, or say who": r"(no|some)body",
    "your own": r"of one's own",
    "timeout": r"time-outs?",
    "cooldown": r"cool-downs?",
    "utilization": r"utilisation",
    "file name": r"filenames?",
    "what is not": r"what is no",
    "silently": r"without a word",
}
#: Where sentences are still to be rewritten. Remove a folder from this list once its test passes.
REMAINING: tuple[str, ...] = ()
FOLDERS = sorted(
    path.name for path in (PROJECT / "constructs_triton").iterdir() if (path / "__init__.py").exists()
)


def _found(path: Path) -> list[str]:
    # An attribute of a library, such as tarfile's `filename`, and a value in quotes are not our words.
    pattern = re.compile(rf"(?<![\w.\"'`-])({'|'.join(WORDS.values())})(?![\w=\"'`-])", re.IGNORECASE)
    lines = path.read_text().splitlines()
    return [
        f"{path.relative_to(PROJECT)}:{number} {match[0]}"
        for number, line in enumerate(lines, 1)
        for match in pattern.finditer(line)
    ]


def _unless_remaining(name: str) -> pytest.MarkDecorator:
    return pytest.mark.xfail(name in REMAINING, reason="still to be rewritten", strict=False)


@pytest.mark.parametrize("folder", [pytest.param(name, marks=_unless_remaining(name)) for name in FOLDERS])
def test_package_uses_ordinary_words(folder: str) -> None:
    """The modules of a folder contain none of the words that have an ordinary one."""
    paths = (PROJECT / "constructs_triton" / folder).rglob("*.py")
    assert not [found for path in paths for found in _found(path)]


@_unless_remaining("the rest")
def test_the_rest_uses_ordinary_words() -> None:
    """Neither do the modules above those folders, the README and the tools."""
    package, tools = (PROJECT / "constructs_triton").glob("*.py*"), (PROJECT / "tools").rglob("*.py")
    assert not [found for path in (*package, *tools, PROJECT / "README.md") for found in _found(path)]
