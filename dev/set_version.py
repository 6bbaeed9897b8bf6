"""Change the version of all packages, and the versions that they require of each other.

    python dev/set_version.py 0.2.0

Writes each ``pyproject.toml``, each ``__version__``, the requirements of the project template, and
what installs the checker elsewhere. Prints what is left to change, such as the heading in
``CHANGELOG.md``. Run ``make`` afterwards, which installs the packages again.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from members import PROJECT, WRITTEN, members_of, written_versions
from packaging.version import InvalidVersion, Version
from release_check import INSTALLERS, REQUIREMENTS, version_problems

_VERSION = re.compile(r'^version = "[^"]+"$', re.MULTILINE)


def set_version(project: Path, version: str) -> list[str]:
    """Write the version into all files, and return the names of those that changed."""
    members = members_of(project)
    names = "|".join(re.escape(member.name) for member in members)
    pin = re.compile(rf"(?<![\w-])({names})(\[[\w,-]+\])?==[\w.+!-]+")
    changed = []
    for name in (
        *(member.file for member in members),
        *written_versions(project),
        REQUIREMENTS,
        *INSTALLERS,
    ):
        path = project / name
        before = path.read_text(encoding="utf-8")
        after = WRITTEN.sub(rf"\g<1>{version}", pin.sub(rf"\g<1>\g<2>=={version}", before))
        if path.name == "pyproject.toml":
            after = _VERSION.sub(f'version = "{version}"', after, count=1)
        if after != before:
            path.write_text(after, encoding="utf-8")
            changed.append(name)
    return changed


def _version(text: str) -> str:
    """Return a version as packages write it."""
    try:
        version = str(Version(text))
    except InvalidVersion:
        message = f"must be a version such as 0.2.0 or 0.2.0.dev0, got {text!r}"
        raise argparse.ArgumentTypeError(message) from None
    if version != text:
        raise argparse.ArgumentTypeError(f"must be in its normal form {version!r}, got {text!r}")
    return text


def main(arguments: list[str] | None = None, project: Path = PROJECT) -> int:
    """Change the version, and print what changed and what is left."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument(
        "version", type=_version, help="the new version, such as 0.2.0 or 0.2.0.dev0"
    )
    version = parser.parse_args(arguments).version
    print(*(f"changed {name}" for name in set_version(project, version)), sep="\n")
    print(*(f"left: {problem}" for problem in version_problems(project)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
