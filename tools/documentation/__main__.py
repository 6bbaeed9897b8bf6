"""Builds the site and fails on a warning or a dead link."""

from __future__ import annotations

import subprocess
import sys

from documentation.links import dead_links
from documentation.pages import PROJECT, collect


def main() -> int:
    """Write ``build/site``, and return 1 if a page has an error."""
    collect(PROJECT / "build" / "docs")
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    if subprocess.run(command, cwd=PROJECT, check=False).returncode:
        return 1
    dead = dead_links(PROJECT / "build" / "site")
    print(*(f"dead link: {line}" for line in dead), sep="\n", file=sys.stderr)
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
