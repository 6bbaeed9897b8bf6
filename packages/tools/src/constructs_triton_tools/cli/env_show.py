"""``constructs-triton env show``: print what a packed environment contains."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.untrusted.terminal import print_json, print_lines, print_table
from constructs_triton_tools.building.environments.contents import (
    EnvironmentContents,
    read_contents,
)

__all__ = ["add_show_arguments", "run_show"]


def add_show_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``env show``."""
    parser.add_argument(
        "archive",
        type=Path,
        metavar="ARCHIVE",
        help="a .tar or .tar.gz of env build, conda-pack or venv-pack",
    )
    add_common(parser, "--json")


def run_show(arguments: argparse.Namespace) -> int:
    """Print the packages with their licenses, the libraries that they bundle,
    the size and the lock file.
    """
    contents = read_contents(arguments.archive)
    if arguments.json:
        print_json(_as_json(arguments.archive, contents))
    else:
        _print(arguments.archive, contents)
    return 0


def _as_json(archive: Path, contents: EnvironmentContents) -> dict[str, Any]:
    return {
        "archive": str(archive),
        "python": contents.python,
        "platform": contents.lock.platform if contents.lock else None,
        "size_bytes": archive.stat().st_size,
        "unpacked_size_bytes": contents.unpacked_bytes,
        "lock_sha256": contents.lock_sha256 or None,
        "packages": [asdict(package) for package in contents.packages],
        "bundled_libraries": contents.bundled,
    }


def _print(archive: Path, contents: EnvironmentContents) -> None:
    lock = contents.lock
    sizes = (
        f"{archive.stat().st_size / 1e6:,.1f} MB, {contents.unpacked_bytes / 1e6:,.1f} MB unpacked"
    )
    print_lines(
        f"{archive}: Python {contents.python or 'unknown'}"
        + (f" on {lock.platform}" if lock else ""),
        f"size:  {sizes}",
        f"lock:  sha256 {contents.lock_sha256}"
        if lock
        else "lock:  none, built by another program",
        "",
    )
    rows = [
        (package.name, package.version, package.license or "not stated")
        for package in contents.packages
    ]
    print_table(["package", "version", "license"], rows)
    if contents.bundled:
        print_lines("", "Wheels also contain these libraries, whose licenses may differ:")
    for folder, names in contents.bundled.items():
        print_lines(f"  {folder}: {', '.join(names)}")
