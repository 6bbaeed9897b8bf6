"""``constructs-triton models copy``: copy a repository of Hugging Face, so that no container needs
a token.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypedDict

from constructs_triton_core.declared_values import Value
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.untrusted.terminal import print_note
from constructs_triton_tools.building.hub.copying import copy_to_folder, copy_to_prefix
from constructs_triton_tools.building.hub.revision import HubFile, HubRevision
from constructs_triton_tools.cli.options import add_options, chosen, open_session, show

_S3 = "s3://"


class _Copied(TypedDict, total=False):
    include: Annotated[
        Sequence[str],
        Value("copy only files that match, such as '*.safetensors'", metavar="PATTERN"),
    ]
    exclude: Annotated[
        Sequence[str], Value("leave out files that match, such as '*.bin'", metavar="PATTERN")
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Copy a repository of Hugging Face at one commit into a folder or below a prefix of S3. "
        "Each file is compared with the digest in the repository, and nothing is in its place "
        "before all files are. The token for a gated or private repository is read from the "
        "variable HF_TOKEN; it is sent to Hugging Face only, and is not stored."
    )
    parser.add_argument("repository", metavar="OWNER/NAME", help="the repository")
    parser.add_argument(
        "destination", metavar="DESTINATION", help="an empty folder, or s3://BUCKET/PREFIX/"
    )
    parser.add_argument(
        "--revision", required=True, metavar="COMMIT", help="the commit, of 40 digits"
    )
    add_options(parser, _Copied)
    add_common(parser, "--region", "--profile", "--json")


def run(arguments: argparse.Namespace) -> int:
    """Copy the files and print what was copied."""
    # The library shows bars of its own, which are for a terminal, and would send statistics.
    if not sys.stderr.isatty():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    patterns = chosen(arguments, _Copied)
    destination: str = arguments.destination
    place = _bucket_and_prefix(destination) if destination.startswith(_S3) else None

    revision = HubRevision.of(arguments.repository, arguments.revision)
    files = revision.files(patterns.get("include", ()), patterns.get("exclude", ()))
    if place is None:
        copy_to_folder(revision, files, Path(destination), print_note)
    else:
        copy_to_prefix(revision, files, place, open_session(arguments), print_note)
    _print(arguments, files)
    return 0


def _bucket_and_prefix(url: str) -> tuple[str, str]:
    bucket, _, prefix = url.removeprefix(_S3).partition("/")
    if not bucket or not prefix.strip("/"):
        raise InvalidValueError(
            f'DESTINATION: must have a bucket and a prefix, got "{url}"; write it as '
            "s3://BUCKET/PREFIX/"
        )
    return bucket, f"{prefix.rstrip('/')}/"


def _print(arguments: argparse.Namespace, files: Sequence[HubFile]) -> None:
    total = sum(file.size_bytes for file in files)
    result = {
        "repository": arguments.repository,
        "revision": arguments.revision,
        "destination": arguments.destination,
        "files": [file.path for file in files],
        "size_bytes": total,
    }
    show(
        arguments,
        result,
        f"{len(files)} files, {total / 1e6:.1f} MB, of {arguments.repository} at "
        f"{arguments.revision} are in {arguments.destination}",
    )
