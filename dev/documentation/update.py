"""Runs the commands of the pages again: ``make docs-update``,
or with ``--check`` compares their output.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from cogapp import Cog

from documentation.console import PROJECT, Console, same

MARK = "[[[cog"


def pages_with_commands() -> list[Path]:
    """Return the pages of which ``cog`` writes a part."""
    folders = [
        (PROJECT / "packages", "*/README.md"),
        (PROJECT / "docs", "**/*.md"),
        (PROJECT / "dev" / "project", "*.md"),
    ]
    pages = [
        PROJECT / "README.md",
        *(page for folder, names in folders for page in sorted(folder.glob(names))),
    ]
    return [page for page in pages if MARK in page.read_text(encoding="utf-8")]


def updated(page: Path) -> str:
    """Run the commands of a page, and return the page with their output."""
    cog = Cog()
    cog.options.prologue = "from documentation.console import Console"
    cog.options.include_path = [str(PROJECT / "dev")]
    cog.options.print_output = True
    return str(cog.process_string(page.read_text(encoding="utf-8"), fname=str(page)))


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pages, or return 1 if ``--check`` finds one that is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path, help="default: every page with commands")
    parser.add_argument("--check", action="store_true", help="write nothing; compare")
    arguments = parser.parse_args(argv)
    outdated = []
    for page in arguments.pages or pages_with_commands():
        try:
            before, after = page.read_text(encoding="utf-8"), updated(page)
        finally:
            Console.close_all()
        if same(before, after):
            continue
        outdated.append(page.resolve().relative_to(PROJECT))
        if not arguments.check:
            page.write_text(after, encoding="utf-8")
    print(
        *(f"{page}: out of date" if arguments.check else f"wrote {page}" for page in outdated),
        sep="\n",
    )
    return 1 if outdated and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
