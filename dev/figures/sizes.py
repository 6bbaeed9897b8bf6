"""What can be counted in the files: lines, names, megabytes and words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx_corpus.__main__ as exporters
import smallest_uses
import test_documentation_site as site
import test_documentation_size as pages
import test_first_screens
import test_help
import test_public_names
import test_shape
import waits
import workspace
from documentation.pages import JOURNEYS, menu
from members import members_of
from site_queries import QUERIES

from figures import PROJECT
from figures.table import Row, at_least, at_most

MEGABYTE = 1e6


def code() -> Iterator[Row]:
    """Lines of the packages, sizes of functions, files and folders, commands and public names."""
    for package in workspace.PACKAGES.values():
        yield Row(f"{package.name}, lines", package.size, at_most(package.lines), workspace)
    yield Row("all packages, lines", sum(each.size for each in workspace.PACKAGES.values()))
    for what, sizes, most in (
        ("longest function, lines", test_shape.function_lengths(), test_shape.LONGEST_FUNCTION),
        ("longest file, lines", test_shape.file_lengths(), test_shape.LONGEST_FILE),
        ("modules in one folder", test_shape.folder_sizes(), test_shape.MOST_MODULES),
    ):
        yield Row(what, max(sizes.values()), at_most(most), test_shape)
    yield Row("commands", len(test_help.TOP), at_most(test_help.MOST_COMMANDS), test_help)
    names = sum(map(len, test_public_names.exported().values()))
    yield Row("public names", names, at_most(test_public_names.MOST_NAMES), test_public_names)
    limit = at_most(exporters.LARGEST_KEPT_BYTES)
    yield Row("models of exporters and their verdicts, bytes", exporters.kept_bytes(), limit, exporters)


def installed() -> Iterator[Row]:
    """Megabytes of each package with all that it requires, without compiled files and extras."""
    own = dict.fromkeys((member.name for member in members_of()), 0)
    for package in workspace.PACKAGES.values():
        name = package.name.replace("_", "-")
        files = (path for path in package.root.rglob("*") if path.is_file() and path.suffix != ".pyc")
        # The wheel of the constructs has the packages without a wheel of their own.
        own[name if name in own else "constructs-triton"] += sum(path.stat().st_size for path in files)
    for name in own:
        found = waits.required(name)
        size = sum(own[each] if each in own else waits.size_of(package) for each, package in found.items())
        most = smallest_uses.MOST_MEGABYTES.get(name, smallest_uses.MOST_MEGABYTES_OF_OTHERS)
        yield Row(f"{name} alone, MB", size / MEGABYTE, at_most(most), smallest_uses)
    size = waits.base_bytes()
    yield Row("what the base install adds to aws-cdk-lib, without our packages, MB", size / MEGABYTE)


def words() -> Iterator[Row]:
    """The length of the documentation, and whether the site's search finds the pages."""
    total = sum(map(pages.words, pages.PAGES))
    yield Row("hand-written pages, words", total, at_most(pages.MOST_WORDS), pages)
    for what, names, most in (
        ("longest journey", JOURNEYS, pages.MOST_OF_A_JOURNEY),
        ("longest other guide", pages.GUIDES, pages.MOST_OF_A_GUIDE),
    ):
        longest = max(names, key=pages.words)
        yield Row(f"{what}, words ({Path(longest).stem})", pages.words(longest), at_most(most), pages)
    widest = max(len(line) for text in pages.PAGES.values() for line in pages.code(text))
    yield Row("widest line of a code block, characters", widest, at_most(pages.WIDEST_CODE), pages)
    yield Row("entries of the menu", len(menu()), at_most(pages.MOST_ENTRIES), pages)
    for page, most in test_first_screens.MOST_WORDS.items():
        title = f"{page.relative_to(PROJECT)}, words"
        yield Row(title, test_first_screens.words(page), at_most(most), test_first_screens)
    yield from _site()


def _site() -> Iterator[Row]:
    index, sources = site.SITE / "search.json", (PROJECT / "docs").rglob("*.md")
    built = index.stat().st_mtime if index.is_file() else 0
    is_new = built > max(page.stat().st_mtime for page in sources)
    note = "" if is_new else "run `make docs` first"
    total = site.words_of_site() if is_new else None
    yield Row("built site without the API, words", total, at_most(site.MOST_WORDS), site, note)
    found = len(QUERIES) - len(site.not_found()) if is_new else None
    yield Row(f"queries that find their page, of {len(QUERIES)}", found, at_least(len(QUERIES)), site, note)
