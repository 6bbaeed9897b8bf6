"""Builds the site and fails on a warning or a dead link."""

from __future__ import annotations

import os
import subprocess
import sys

from documentation.api import write_api
from documentation.descriptions import describe
from documentation.links import dead_links
from documentation.llms import write_llms
from documentation.pages import PROJECT, collect, missing_in_nav
from documentation.search import weigh

PAGES = PROJECT / "build" / "docs"


def main() -> int:
    """Write ``build/site``, and return 1 if a page has an error."""
    collect(PAGES)
    write_api(PAGES / "reference" / "api")
    describe(PAGES)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    if subprocess.run(
        command, cwd=PROJECT, env={**os.environ, "NO_COLOR": "1"}, check=False
    ).returncode:
        return 1
    weigh(PROJECT / "build" / "site")
    write_llms(PROJECT / "mkdocs.yml", PAGES, PROJECT / "build" / "site")
    errors = [f"mkdocs.yml: add {page} to nav" for page in missing_in_nav(PAGES)]
    errors += [f"dead link: {line}" for line in dead_links(PROJECT / "build" / "site")]
    print("\n".join(errors), file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
