"""The generated pages of the site: the API, the commands,
the limits and the troubleshooting pages.
"""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path

import pytest
from documentation.api import PACKAGES, undocumented, write_api
from documentation.comparison import compared
from documentation.docstrings import read_docstring
from documentation.generated import write_generated
from documentation.llms import write_llms
from documentation.pages import FIRST_PAGES, LINK, PROJECT, collect
from documentation.rehearsal_score import missed, not_simulated, score_table
from test_layers import LAYERS
from workspace import PACKAGES as WORKSPACE

import constructs_triton
from constructs_triton.cli import COMMANDS
from constructs_triton_core.declared_values import declared_values
from constructs_triton_core.facts.failures import known_failures

DOCS = PROJECT / "docs"
CONTRIBUTING = (PROJECT / "CONTRIBUTING.md").read_text()


class _Documented:
    """First sentence of ``Example``.

    ``name``, ``other``
        What it is. Default: ``"x"``. Then more.

    Raises:
        ValueError: it is wrong
            in two lines.
    """


class _DocumentedTree:
    """Types::

        _DocumentedTree

    Then a tree.

    ::

        A
        └── B

    Then ``text``.
    """


class _DocumentedToo(_Documented):
    """Another.

    Args:
        **options: Others.
    """


def test_docstring_is_text_entries_and_errors() -> None:
    """The parts of a docstring are read."""
    found = read_docstring(_Documented)
    assert read_docstring(_DocumentedToo).entries["name"] == found.entries["name"]
    assert read_docstring(_DocumentedToo).entries["options"].meaning == "Others."
    assert found.text == "First sentence of `Example`."
    assert found.entries["name"] == found.entries["other"]
    assert (found.entries["name"].meaning, found.entries["name"].default) == (
        "What it is. Then more.",
        '`"x"`',
    )
    assert found.errors == [("ValueError", "it is wrong in two lines.")]


def test_indented_lines_after_two_colons_are_a_code_block() -> None:
    """A literal block becomes a fenced one; a paragraph of two colons disappears."""
    tree = "Then a tree.\n\n```python\nA\n└── B\n```\n\nThen `text`."
    assert (
        read_docstring(_DocumentedTree).text
        == f"Types:\n\n```python\n_DocumentedTree\n```\n\n{tree}"
    )


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("api")
    write_api(folder)
    return {page.stem: page.read_text() for page in folder.iterdir()}


def test_every_public_name_has_a_section(api: dict[str, str]) -> None:
    """Each name that a package exports has a section on the page of the package."""
    names = {
        name for page in api for name in constructs_triton.__all__ if f"\n## {name} {{" in api[page]
    }
    assert names == set(constructs_triton.__all__)
    text = "".join(api.values())
    for module in PACKAGES.values():
        public = importlib.import_module(module).__all__
        assert [name for name in public if f"\n## {name} {{" not in text] == []
    assert "from constructs_triton_core.errors import InvocationError" in api["errors"]


def test_types_that_are_returned_have_a_section(api: dict[str, str]) -> None:
    """What a public function returns is described on its page, with what it consists of."""
    planning = api["planning"]
    assert "\n## Simulation { #Simulation }\n\nReturned by `simulate`.\n" in planning
    assert (
        "\n## SimulatedMinute { #SimulatedMinute }\n\nPart of "
        "[`Simulation.minutes`](#Simulation).\n"
    ) in planning
    assert "\n## ModelTensor {" in api["model_files"]


def test_pages_are_the_same_in_each_build(api: dict[str, str]) -> None:
    """No default is shown as an address in memory."""
    assert [page for page, text in api.items() if re.search(r"\bat 0x[0-9a-f]+", text)] == []


def test_every_property_has_its_meaning(api: dict[str, str]) -> None:
    """The properties of endpoints have a type, a meaning and a default in one column,
    and no table.
    """
    section = api["endpoints"].partition("\n## EndpointOptions")[2].partition("\n## ")[0]
    meanings = dict(re.findall(r"^`(\w+)`: .+\n:   (.+)$", section, re.MULTILINE))
    declared = declared_values(constructs_triton.EndpointOptions)
    assert [name for name in declared if not meanings.get(name)] == []
    assert [page for page, text in api.items() if page != "index" and "|---" in text] == []


def test_types_are_those_of_python(api: dict[str, str]) -> None:
    """A count is an ``int``, though jsii annotates it with ``float``; a share stays a ``float``."""
    assert "\n`initial_instance_count`: `int` | `None`\n:   " in api["endpoints"]
    assert "\n`initial_variant_weight`: `float` | `None`\n:   " in api["endpoints"]
    assert "\n`min_capacity`: `int`, required\n:   " in api["scaling"]
    assert not re.search(
        r"`[^`\n]*\b(?:Optional|Union|List|Dict|ForwardRef)\[", "".join(api.values())
    )


def test_every_parameter_has_a_meaning() -> None:
    """Each parameter and field of a public name is described in a docstring."""
    assert list(undocumented()) == []


def test_every_command_and_every_failure_has_a_section() -> None:
    """Each command, each limit and each message of the catalogue is on a page."""
    commands = (DOCS / "reference" / "commands.md").read_text()
    assert [name for name in COMMANDS if f"# {name}\n" not in commands] == []
    assert "| endpoint name | 1 to 63 characters" in (DOCS / "reference" / "limits.md").read_text()
    text = "".join(page.read_text() for page in (DOCS / "troubleshooting").glob("*.md"))
    assert [each.id for each in known_failures() if f"\n## {each.id}\n" not in text] == []


def test_blocks_of_generated_pages_fit_on_a_screen() -> None:
    """No line of a block of a generated page has more than 84 characters,
    unless it is one long word.
    """
    names = ("reference/commands.md", "reference/checks/*.md", "troubleshooting/*.md")
    wide = [
        f"{page.name}: {line}"
        for name in names
        for page in DOCS.glob(name)
        for block in re.findall(r"^```\w+\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
        if len(line) > 84 and " " in line.strip()
    ]
    assert wide == []


def test_generated_pages_are_current(tmp_path: Path) -> None:
    """The generated pages and pictures of ``docs/`` are what ``make docs-pages`` writes today."""
    write_generated(tmp_path)
    written = {page.relative_to(tmp_path): page.read_text() for page in tmp_path.rglob("*.*")}
    differing = [str(name) for name, text in written.items() if (DOCS / name).read_text() != text]
    assert differing == [], "run make docs-pages"


def test_every_link_leads_to_a_page_of_the_site(tmp_path: Path, api: dict[str, str]) -> None:
    """On the site, links to files of the project lead to pages that exist."""
    collect(tmp_path / "docs")
    assert not (tmp_path / "docs" / "reference" / "api.md").exists()
    for page in (tmp_path / "docs").rglob("*.md"):
        for link in LINK.finditer(page.read_text()):
            target = (page.parent / link["path"]).resolve()
            is_api = target.parent.name == "api" and target.stem in api
            assert target.exists() or is_api, f"{page.name}: {link['path']}"


def test_site_has_no_page_of_maintainers(tmp_path: Path) -> None:
    """A link to what is read in the repository is text on the site,
    and leads to a file in a checkout.
    """
    collect(tmp_path / "docs")
    page = "checker/agreement.md"
    assert "[The ledger](../../packages/check/tests/" in (DOCS / page).read_text()
    assert "The ledger in the repository" in (tmp_path / "docs" / page).read_text()
    assert not (tmp_path / "docs" / "source" / "packages").exists()


def test_start_page_lists_every_guide() -> None:
    """The table "All guides" of the start page has each guide of the site's navigation."""
    table = (DOCS / "index.md").read_text().partition("## All guides")[2]
    guides = re.findall(r"guides/\w+\.md", (PROJECT / "mkdocs.yml").read_text())
    assert guides
    assert [guide for guide in guides if guide not in table] == []


def test_every_link_works_in_a_checkout() -> None:
    """In a checkout, every link of a page leads to a file, and to a heading or an anchor of it."""
    pages = [
        page
        for folder in ("docs", "examples", "packages", "dev")
        for page in (PROJECT / folder).rglob("*.md")
    ]
    for page in (*pages, *PROJECT.glob("*.md")):
        for link in LINK.finditer(page.read_text()):
            target = (page.parent / link["path"]).resolve()
            assert target.exists(), f"{page.name}: {link['path']}"
            anchor = (link["anchor"] or "")[1:]
            assert not anchor or anchor in _anchors(target), f"{page.name}: {link['path']}#{anchor}"
        of_the_page = set(re.findall(r"\]\(#([^)\s]+)\)", page.read_text()))
        assert of_the_page <= _anchors(page), page.name


@cache
def _anchors(page: Path) -> set[str]:
    """The anchors of a page, from its headings as GitHub makes them, and from its HTML."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    slugs = {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }
    return slugs | set(re.findall(r'<a id="([^"]+)">', text))


def test_every_capability_is_compared() -> None:
    """Each of the 117 capabilities has a value for each library."""
    rows = compared()
    assert [row[0] for row in rows] == [str(number) for number in range(1, 118)]
    assert all(all(row) for row in rows)


def test_picture_shows_all_layers() -> None:
    """The picture of the packages shows each package with its layers."""
    picture = (DOCS / "images" / "layers.svg").read_text()
    names = [name for package in WORKSPACE for name in (package, *LAYERS[package])]
    assert [name for name in names if name[0] != "_" and f">{name}</text>" not in picture] == []


def test_packages_of_contributing_are_those_of_the_workspace() -> None:
    """The table of the packages has all of them, the top one first, with their floors."""
    rows = [
        line.strip("| ").split(" | ")
        for line in CONTRIBUTING.splitlines()
        if line.startswith("| `")
    ]
    found = {row[1].strip("`"): row[3] for row in rows if len(row) == 5}
    short = {name: name.rpartition("_")[2] for name in WORKSPACE}
    expected = {
        package.name: ", ".join(short[floor] for floor in package.floors) or "none"
        for package in WORKSPACE.values()
    }
    assert found == expected
    assert [*found] == [*reversed(expected)]


def test_map_of_contributing_leads_to_files() -> None:
    """Each row of "I want to change X" names files and folders that exist,
    also those of the page.
    """
    section = CONTRIBUTING.partition("## I want to change X, look here\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    paths = re.findall(r"`((?:constructs_triton|packages|tests|dev|docs)/[^`]*)`", section)
    assert rows
    assert [path for path in paths if not (PROJECT / path).exists()] == []
    for part in ("local/page/static/", "packages/rehearse/"):
        assert part in section


def test_moved_modules_lead_to_modules() -> None:
    """Each new place in the table of moved modules exists."""
    text = (PROJECT / "dev" / "moved_modules.md").read_text()
    places = {name.split(".")[0]: package.root.parent for name, package in WORKSPACE.items()}
    for name in re.findall(r"^\| `[^|]+ \| `([\w.]+)`", text, re.MULTILINE):
        path = places[name.split(".")[0]].joinpath(*name.split("."))
        assert path.is_dir() or path.with_suffix(".py").is_file(), name


def test_readme_of_a_package_names_its_rooms() -> None:
    """The README of each package has each of its rooms in a table."""
    for package in WORKSPACE.values():
        if package.source != ".":
            text = (PROJECT / package.source).parent.joinpath("README.md").read_text()
            rooms = [name for name in LAYERS[package.name] if name[0] != "_"]
            assert [
                name for name in rooms if not re.search(rf"^\|.*`{name}`", text, re.MULTILINE)
            ] == []


def test_pages_need_no_script_of_another_host() -> None:
    """The site would load Mermaid's script from a public server,
    which a company's proxy may block.
    """
    pages = [*(PROJECT / "docs").rglob("*.md"), PROJECT / "README.md", PROJECT / "mkdocs.yml"]
    found = [
        page.name for page in pages if re.search(r"```mermaid|name: mermaid", page.read_text())
    ]
    assert found == []


def test_score_of_the_rehearsal_is_counted() -> None:
    """The page of the score is what the record says."""
    page = (PROJECT / "dev" / "project" / "rehearsal_score.md").read_text(encoding="utf-8")
    for part in (score_table(), missed(), not_simulated()):
        assert part.strip() in page, "run make rehearsal-score"


def test_llms_txt_lists_every_page(api: dict[str, str], tmp_path: Path) -> None:
    """Each page of the table of contents has one line in llms.txt, whose link leads to its
    Markdown, except generated pages to which the first of their folder links.
    """
    pages, site = tmp_path / "docs", tmp_path / "site"
    site.mkdir()
    collect(pages)
    (pages / "reference" / "api").mkdir()
    for name, page in api.items():
        (pages / "reference" / "api" / f"{name}.md").write_text(page)
    write_llms(PROJECT / "mkdocs.yml", pages, site)
    text = (site / "llms.txt").read_text()
    linked = re.findall(r"^- \[[^]]+\]\(([^)]+)\)", text, re.MULTILINE)
    listed = re.findall(
        r"^ +- (?:.*: )?([\w/]+\.md)$", (PROJECT / "mkdocs.yml").read_text(), re.MULTILINE
    )
    below = tuple(FIRST_PAGES)
    first = [*FIRST_PAGES.values()]
    assert linked == [page for page in listed if page in first or not page.startswith(below)]
    assert [page for page in linked if not (site / page).is_file()] == []
    assert "- [Find drift](guides/drift.md): A model gets worse when" in text
