"""Every Python block in the READMEs and the guides runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

PROJECT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    PROJECT / "README.md",
    PROJECT / "client" / "README.md",
    *sorted((PROJECT / "docs").rglob("*.md")),
]


def _blocks() -> Iterator[object]:
    for document in DOCUMENTS:
        for token in MarkdownIt().parse(document.read_text()):
            if token.type == "fence" and token.info.split() == ["python"] and token.map:
                yield pytest.param(token.content, id=f"{document.relative_to(PROJECT)}:{token.map[0] + 1}")


@pytest.mark.parametrize("block", list(_blocks()))
def test_block_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block runs unchanged, in a folder with the project's assets and a model repository ``models``."""
    shutil.copytree(PROJECT / "assets" / "model_repositories" / "digits", tmp_path / "models")
    (tmp_path / "assets").symlink_to(PROJECT / "assets")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CDK_OUTDIR", str(tmp_path / "cdk.out"))
    exec(compile(block, "<block>", "exec"), {"__name__": "__main__"})
