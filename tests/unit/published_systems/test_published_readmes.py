"""The READMEs of the published systems have the same sections,
and a table of the article's paragraphs.
"""

from __future__ import annotations

import re

import pytest
from published_examples import EXAMPLES

SYSTEMS = (
    "bert_benchmark",
    "dali_inception",
    "minilm_ensembles",
    "resnet_autoscaling",
    "t5_python_backend",
)
SECTIONS = (
    "What the article does",
    "Files",
    "Run it on your machine",
    "Run it on SageMaker",
    "What differs and why",
    "What only a GPU shows",
    "The article, paragraph by paragraph",
)


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_paragraph_works_or_needs_a_gpu(system: str) -> None:
    """The README has all sections; its last table says for each paragraph one of three things."""
    text = (EXAMPLES / system / "README.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert tuple(section.partition("\n")[0] for section in sections) == SECTIONS
    _, _, *rows = [line for line in sections[-1].splitlines() if line.startswith("|")]
    assert len(rows) > 10
    assert {row.strip("| ").rpartition("|")[2].strip() for row in rows} == {
        "works",
        "works locally",
        "needs a GPU",
    }
