"""Builds the site and fails on a warning or a dead link."""

from __future__ import annotations

import os
import subprocess
import sys

from documentation.api import write_api
from documentation.commands import write_commands
from documentation.comparison import write_comparison
from documentation.limits import write_limits
from documentation.links import dead_links
from documentation.pages import PROJECT, collect, missing_in_nav
from documentation.pictures import write_pictures
from documentation.troubleshooting import write_troubleshooting

PAGES = PROJECT / "build" / "docs"


def main() -> int:
    """Write ``build/site``, and return 1 if a page has an error."""
    collect(PAGES)
    write_pictures(PAGES / "images")
    write_api(PAGES / "reference" / "api")
    write_commands(PAGES / "reference" / "commands.md")
    write_comparison(PAGES / "reference" / "comparison.md")
    write_limits(PAGES / "reference" / "limits.md")
    write_troubleshooting(PAGES / "troubleshooting")
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    if subprocess.run(command, cwd=PROJECT, env={**os.environ, "NO_COLOR": "1"}, check=False).returncode:
        return 1
    errors = [f"mkdocs.yml: add {page} to nav" for page in missing_in_nav(PAGES)]
    errors += [f"dead link: {line}" for line in dead_links(PROJECT / "build" / "site")]
    print("\n".join(errors), file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
