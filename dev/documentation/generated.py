"""Writes the pages and pictures of ``docs/`` that are generated from the code: ``make docs-pages``.

They are committed, so that links to them work in a checkout; a test compares them. Of the API only
the list of names is committed: the build of the site writes its pages.
"""

from __future__ import annotations

from pathlib import Path

from documentation.api import write_names
from documentation.commands import write_commands
from documentation.comparison import write_comparison
from documentation.first_app import write_first_app
from documentation.limits import write_limits
from documentation.pages import PROJECT
from documentation.pictures import write_pictures
from documentation.rehearsal import write_rehearsal_problems
from documentation.troubleshooting import write_troubleshooting


def write_generated(docs: Path) -> None:
    """Write the generated pages to a folder like ``docs/``."""
    (docs / "reference").mkdir(parents=True, exist_ok=True)
    write_pictures(docs / "images")
    write_first_app(docs / "images")
    write_names(docs / "reference" / "api.md")
    write_commands(docs / "reference" / "commands.md")
    write_comparison(docs / "reference" / "comparison.md")
    write_limits(docs / "reference" / "limits.md")
    write_rehearsal_problems(docs / "reference")
    write_troubleshooting(docs / "troubleshooting")


if __name__ == "__main__":
    write_generated(PROJECT / "docs")
