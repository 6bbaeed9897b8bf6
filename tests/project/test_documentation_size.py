"""The documentation stays as short as a reader can use: words in total, and width of code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from documentation.descriptions import describe, first_sentence
from documentation.pages import JOURNEYS, PROJECT, hand_written, is_generated, menu
from documentation.search import weigh

PAGES = hand_written()
GUIDES = sorted(name for name in PAGES if name.startswith("guides/") and name not in JOURNEYS)
MOST_WORDS = 55_000
WIDEST_CODE = 84


def words(name: str) -> int:
    """What a reader sees: also code and tables."""
    return len(PAGES[name].split())


def test_documentation_has_few_words() -> None:
    """The pages that a person wrote have 55,000 words at most."""
    assert sum(map(words, PAGES)) <= MOST_WORDS


def test_guides_do_not_list_options() -> None:
    """Options of commands are in `--help` and in the reference of the commands,
    not in tables of guides.
    """
    rows = re.compile(r"(?:^\s*\| `--[\w-]+.*\n){3}", re.MULTILINE)
    assert [name for name in PAGES if name.startswith("guides/") and rows.search(PAGES[name])] == []


def test_code_fits_a_screen() -> None:
    """No line of a code block is wider than 84 characters."""
    wide = {
        name: [line for line in code(text) if len(line) > WIDEST_CODE]
        for name, text in PAGES.items()
    }
    assert {name: lines for name, lines in wide.items() if lines} == {}


def code(text: str) -> Iterator[str]:
    """The lines inside the fences, without the indentation of the fence."""
    fence = None
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fence = len(line) - len(line.lstrip()) if fence is None else None
        elif fence is not None:
            yield line[fence:]


def test_menu_leads_to_pages() -> None:
    """Each entry of the menu leads to a page that is generated or exists."""
    own = [
        page for page in menu() if not page.startswith(("project/", "packages/", "reference/api/"))
    ]
    assert [page for page in own if not (PROJECT / "docs" / page).is_file()] == []


def test_generated_pages_are_told_apart() -> None:
    """The API, the commands and the checks are generated; guides and journeys are not."""
    assert is_generated("reference/api/endpoints.md")
    assert is_generated("reference/checks.md")
    assert not any(map(is_generated, (*GUIDES, *JOURNEYS)))
    assert set(JOURNEYS) <= set(PAGES)


def test_descriptions_are_first_sentences(tmp_path: Path) -> None:
    """A page without a description gets its first sentence, without marks; other fields stay."""
    page = tmp_path / "page.md"
    page.write_text(
        '---\ntitle: T\n---\n# A\n\n<!-- no. -->\nUse `a`, see\n[the "b"](b.md). More.\n'
    )
    describe(tmp_path)
    describe(tmp_path)
    assert page.read_text().startswith(
        "---\ntitle: T\ndescription: \"Use a, see the 'b'.\"\n---\n# A\n"
    )
    assert first_sentence("# Only a heading\n\n[All](all.md)\n") == ""


def test_headings_of_generated_pages_count_as_text(tmp_path: Path) -> None:
    """A generated section has the title of its page; a guide also has the text of its sections."""
    items = [
        {"location": "guides/cost.html", "title": "Cost", "text": "a", "path": []},
        {"location": "guides/cost.html#b", "title": "B", "text": "c", "path": []},
        {"location": "reference/commands.html", "title": "Commands", "text": "", "path": []},
        {"location": "reference/commands.html#cost", "title": "cost", "text": "d", "path": []},
    ]
    index = tmp_path / "search.json"
    index.write_text(json.dumps({"items": items}))
    weigh(tmp_path)
    found = json.loads(index.read_text())["items"]
    assert [(item["title"], item["text"]) for item in found] == [
        ("Cost", "a<p>B</p>c"),
        ("B", "c"),
        ("Commands", ""),
        ("Commands", "<p>cost</p>d"),
    ]
    assert found[3]["path"] == ["Reference", "Commands"]
