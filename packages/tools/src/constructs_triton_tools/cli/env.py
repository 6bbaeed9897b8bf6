"""``constructs-triton env``: build Python environments for the Python backend,
and show their contents.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypedDict

from constructs_triton_core.declared_values import Value
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.untrusted.terminal import print_json, print_lines, print_note, show_work
from constructs_triton_tools.building.environments.archive import write_file
from constructs_triton_tools.building.environments.building import BuiltEnvironment, build
from constructs_triton_tools.cli.env_show import add_show_arguments, run_show
from constructs_triton_tools.cli.options import add_actions, add_options
from triton_model_check.artifacts.environments.lock import lock_path, read_lock_file
from triton_model_check.artifacts.environments.requirements import read_requirements
from triton_model_check.artifacts.environments.target import EnvironmentTarget, image_target
from triton_model_check.facts.images import DEFAULT_VERSION

_LARGE_BYTES = 2 * 10**9


class _Build(TypedDict, total=False):
    image_version: Annotated[
        str, Value("Triton release of the image", default=DEFAULT_VERSION, metavar="YY.MM")
    ]
    output: Annotated[
        Path,
        Value(
            "also write the environment to this .tar or .tar.gz file", short="-o", metavar="FILE"
        ),
    ]
    extras: Annotated[
        Sequence[str] | None,
        Value(
            "optional dependencies of the project",
            default_text="those of the lock file",
            flag="--extra",
            metavar="NAME",
        ),
    ]
    index: Annotated[
        Sequence[str],
        Value("index to search before PyPI", default_text="those of the lock file", metavar="URL"),
    ]
    default_index: Annotated[str, Value("index to search in place of PyPI", metavar="URL")]
    find_links: Annotated[Sequence[str], Value("folder or page with wheels", metavar="PATH")]
    update: Annotated[
        bool, Value("choose the newest versions, and not those of the lock file", default=False)
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``env`` and its actions."""
    parser.description = (
        "Build Python environments for the Python backend, and show what they contain."
    )
    build_parser, show_parser = add_actions(
        parser,
        build=(
            "build an environment from requirements",
            (
                "Build a Python environment for EXECUTION_ENV_PATH from requirements, for the "
                "Python and the platform of AWS's image, on any machine. It needs no conda, no "
                "container and no interpreter of that version, and runs no code of the packages. "
                "The versions and hashes are written into a lock file beside the requirements, "
                "such as requirements.py3.12.lock; with this file, every build gives the same "
                "bytes. triton-models.toml names the requirements for the app and the commands."
            ),
        ),
        show=(
            "show what an environment contains",
            (
                "Print the packages of an environment with their versions and licenses, the "
                "libraries that they bundle, the sizes, and the digest of the lock file. "
                "Nothing is unpacked or run."
            ),
        ),
    )
    build_parser.add_argument(
        "requirements",
        type=Path,
        metavar="REQUIREMENTS",
        help="requirements.txt, pyproject.toml or uv.lock",
    )
    add_options(build_parser, _Build)
    add_common(build_parser, "--json")
    add_show_arguments(show_parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the action."""
    return run_show(arguments) if arguments.action == "show" else _build(arguments)


def _build(arguments: argparse.Namespace) -> int:
    """Build the environment, and print where it is."""
    target = image_target(arguments.image_version)
    requirements = read_requirements(arguments.requirements, _extras(arguments, target))
    with show_work("resolving, downloading and packing"):
        built = build(
            requirements,
            target,
            options=_index_options(arguments) or None,
            update=arguments.update,
        )
        if arguments.output is not None:
            write_file(built.archive, arguments.output)
    output = arguments.output or built.archive
    if arguments.json:
        print_json(_as_json(built, output))
    else:
        _print(built, output)
    return 0


def _extras(arguments: argparse.Namespace, target: EnvironmentTarget) -> Sequence[str]:
    """Return the given extras, or those of the lock file,
    so that the next build needs no options.
    """
    if arguments.extras is not None:
        return list(arguments.extras)
    lock = read_lock_file(lock_path(arguments.requirements, target))
    return () if lock is None else lock.extras


def _index_options(arguments: argparse.Namespace) -> list[str]:
    options = []
    if arguments.default_index:
        options += ["--default-index", arguments.default_index]
    for url in arguments.index:
        options += ["--index", url]
    for place in arguments.find_links:
        options += ["--find-links", place]
    return options


def _as_json(built: BuiltEnvironment, output: Path) -> dict[str, object]:
    return {
        "archive": str(output),
        "lock": str(built.lock_path),
        "python": built.lock.python,
        "platform": built.lock.platform,
        "packages": built.lock.versions,
        "size_bytes": output.stat().st_size,
        "unpacked_size_bytes": built.archive.stat().st_size,
        "is_resolved": built.is_resolved,
        "is_new": built.is_new,
    }


def _print(built: BuiltEnvironment, output: Path) -> None:
    lock = built.lock
    unpacked = built.archive.stat().st_size
    count = lock.package_count
    state = "written" if built.is_resolved else "unchanged"
    size = f"{unpacked / 1e6:,.1f} MB"
    print_lines(
        f"{built.lock_path}: {state}, {count} package{'s' if count > 1 else ''}",
        f"{output}: Python {lock.python} on {lock.platform}, {size} unpacked"
        + ("" if built.is_new else ", from the cache"),
    )
    if unpacked > _LARGE_BYTES:
        print_note(
            f"note: each instance downloads and unpacks {size}; for packages of this size, such as "
            "torch, an image of your own starts faster: see TritonImage.from_asset"
        )
