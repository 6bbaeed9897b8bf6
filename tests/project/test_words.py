"""Messages, docstrings and comments use ordinary words, and one word for one thing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from workspace import PACKAGES, PROJECT

#: The word to write, and a pattern of what not to write in its place.
WORDS = {
    "fix": r"mend(s|ed|ing)?",
    "no, nothing, or say who": r"(no|some)body",
    "your own": r"one's own",
    "timeout": r"time-outs?",
    "cooldown": r"cool-downs?",
    "utilization": r"utilisation",
    "file name": r"filenames?",
    "what is not": r"what is no",
    "silently": r"without a word",
    "reports, raises, prints": r"told",
    "type": r"(of|wrong|another) class",
    "is, has, contains": r"lies|bears?|stands? (here|there|beside)|as it stands",
    "created": r"(is|are|was|were|be) made(?! (of|to))",
    "deleted, ended": r"(is|are|was|were) gone",
    "optional, ignored": r"may be absent|passed over",
    "checks": r"judges?|judged",
    "say who": r"whoever",
    "a number": r"so many",
    "so": r"hence|lest",
}
TOPS = ("tests", *(f"{each.source}/{each.name}" for each in PACKAGES.values()))
FOLDERS = sorted(
    str(path.relative_to(PROJECT))
    for path in (
        *(path for top in TOPS for path in (PROJECT / top).iterdir()),
        *PROJECT.glob("packages/*/tests"),
    )
    if path.is_dir() and path.name != "__pycache__"
)


def _found(path: Path) -> list[str]:
    # An attribute of a library, such as tarfile's `filename`, and a value in quotes are not our
    # words.
    pattern = re.compile(
        rf"(?<![\w.\"'`-])({'|'.join(WORDS.values())})(?![\w=\"'`-])", re.IGNORECASE
    )
    lines = path.read_text().splitlines()
    return [
        f"{path.relative_to(PROJECT)}:{number} {match[0]}"
        for number, line in enumerate(lines, 1)
        for match in pattern.finditer(line)
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_folder_uses_ordinary_words(folder: str) -> None:
    """The modules of a folder contain none of the words that have an ordinary one."""
    paths = (path for path in (PROJECT / folder).rglob("*.py") if path != Path(__file__))
    assert not [found for path in paths for found in _found(path)]


def test_the_rest_uses_ordinary_words() -> None:
    """Neither do the modules above those folders, the README, the tools and the benchmarks."""
    package = (path for each in PACKAGES.values() for path in each.root.glob("*.py*"))
    scripts = (path for name in ("dev", "benchmarks") for path in (PROJECT / name).rglob("*.py"))
    assert not [
        found for path in (*package, *scripts, PROJECT / "README.md") for found in _found(path)
    ]
