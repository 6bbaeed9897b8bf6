"""What can be counted in the files: lines, names, megabytes and words. Few of them have a limit."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_corpus.__main__ as exporters
import smallest_uses
import test_documentation_site as site
import test_documentation_size as pages
import test_help
import test_public_names
import test_shape
import waits
import workspace
from documentation.pages import menu
from members import members_of
from site_queries import QUERIES

from figures.table import Row, at_least, at_most

MEGABYTE = 1e6
#: A longer file is worth a look; no test fails.
LONG_FILE = 400


def code() -> Iterator[Row]:
    """Lines of the packages, sizes of functions and files, commands and public names."""
    lines = {name: _lines(package) for name, package in workspace.PACKAGES.items()}
    for name, count in lines.items():
        yield Row(f"{name}, lines", count)
    yield Row("all packages, lines", sum(lines.values()))
    longest = max(test_shape.function_lengths().values())
    yield Row("longest function, lines", longest, at_most(test_shape.LONGEST_FUNCTION), test_shape)
    files = test_shape.file_lengths()
    yield Row("longest file, lines", max(files.values()), note=max(files, key=files.__getitem__))
    yield Row("files of more than 400 lines", sum(lines > LONG_FILE for lines in files.values()))
    yield Row("commands", len(test_help.TOP))
    yield Row("public names", sum(map(len, test_public_names.exported().values())))
    limit = at_most(exporters.LARGEST_KEPT_BYTES)
    yield Row(
        "models of exporters and their verdicts, bytes", exporters.kept_bytes(), limit, exporters
    )


def _lines(package: workspace.Package) -> int:
    return sum(path.read_text().count("\n") for path in (*package.modules, *package.stubs))


def installed() -> Iterator[Row]:
    """Megabytes of each package with all that it requires, without compiled files and extras."""
    own = dict.fromkeys((member.name for member in members_of()), 0)
    for package in workspace.PACKAGES.values():
        name = package.name.replace("_", "-")
        files = (
            path for path in package.root.rglob("*") if path.is_file() and path.suffix != ".pyc"
        )
        # The wheel of the constructs has the packages without a wheel of their own.
        own[name if name in own else "constructs-triton"] += sum(
            path.stat().st_size for path in files
        )
    for name in own:
        found = waits.required(name)
        size = sum(
            own[each] if each in own else waits.size_of(package) for each, package in found.items()
        )
        most = smallest_uses.MOST_MEGABYTES.get(name, smallest_uses.MOST_MEGABYTES_OF_OTHERS)
        yield Row(f"{name} alone, MB", size / MEGABYTE, at_most(most), smallest_uses)
    size = waits.base_bytes()
    yield Row(
        "what the base install adds to aws-cdk-lib, without our packages, MB", size / MEGABYTE
    )


def words() -> Iterator[Row]:
    """The length of the documentation, and whether the site's search finds the pages."""
    total = sum(map(pages.words, pages.PAGES))
    yield Row("hand-written pages, words", total, at_most(pages.MOST_WORDS), pages)
    longest = max(pages.PAGES, key=pages.words)
    yield Row("longest hand-written page, words", pages.words(longest), note=longest)
    widest = max(len(line) for text in pages.PAGES.values() for line in pages.code(text))
    yield Row("widest line of a code block, characters", widest, at_most(pages.WIDEST_CODE), pages)
    yield Row("entries of the menu", len(menu()))
    yield from _site()


def _site() -> Iterator[Row]:
    index = site.SITE / "search.json"
    sources = (workspace.PROJECT / "docs").rglob("*.md")
    built = index.stat().st_mtime if index.is_file() else 0
    is_new = built > max(page.stat().st_mtime for page in sources)
    note = "" if is_new else "run `make docs` first"
    total = site.words_of_site() if is_new else None
    yield Row("built site without the API, words", total, at_most(site.MOST_WORDS), site, note)
    found = len(QUERIES) - len(site.not_found()) if is_new else None
    yield Row(
        f"queries that find their page, of {len(QUERIES)}",
        found,
        at_least(len(QUERIES)),
        site,
        note,
    )
