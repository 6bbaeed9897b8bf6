"""``constructs-triton project new``: write a small project with an endpoint and its tests."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from constructs_triton_core import __version__
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.drafts import (
    partial_folder,
    place_folder,
    place_of_draft,
    remove_abandoned,
)
from constructs_triton_core.untrusted.regular_files import explained
from constructs_triton_core.untrusted.terminal import print_lines
from constructs_triton_core.untrusted.written_files import write_whole
from constructs_triton_tools.cli.options import add_actions

_TEMPLATE = Path(__file__).parent / "template"
# Each folder contains the files that differ from the template.
_EXAMPLES = Path(__file__).parent / "examples"
_REPOSITORIES = Path("assets", "model_repositories")
#: The name of the project in the template.
_NAME = "triton-project"
_NAMED_FILES = ("README.md", "app.py", "package.json")
# Without the dot, Git and the build of the package would obey these files.
_WITH_DOT = ("gitattributes", "github", "gitignore")
_LONGEST_STACK_NAME = 128


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``project`` and its only action, ``new``."""
    parser.description = "Create a project with a CDK app."
    (new,) = add_actions(
        parser,
        new=(
            "create a folder with an app, models and tests",
            (
                "Create a folder with a CDK app of one endpoint, its models, tests with a snapshot "
                "and a local endpoint, and workflows for GitHub. "
                "Its README has the two commands that run the tests."
            ),
        ),
    )
    new.add_argument(
        "--example",
        choices=sorted(folder.name for folder in _EXAMPLES.iterdir()),
        help=(
            "digits: an ensemble that reads handwritten digits, the models of the documentation; "
            "multi-model: several models behind one endpoint, with alarms "
            "(default: a single small model)"
        ),
    )
    new.add_argument(
        "directory", type=Path, metavar="DIR", help="the folder; it must be empty or not exist"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the project, and print its files and the next commands."""
    directory: Path = arguments.directory
    name = _stack_name(directory)
    _refuse_content(directory)
    files = _files(arguments.example)
    with explained(directory, "cannot be written", "choose a folder that you may write"):
        _write(files, directory, name)
    print_lines(*(str(directory / target) for target in sorted(files)))
    folder = shlex.quote(str(directory))
    print_lines(
        "",
        f"next: cd {folder}",
        "      python -m pip install -r requirements.txt",
        "      python -m pytest",
        *_unpublished(),
    )
    return 0


def _write(files: Mapping[Path, Path], directory: Path, name: str) -> None:
    """Write the files as a whole folder or not at all, so that the command can be repeated."""
    with partial_folder(place_of_draft(directory)) as draft:
        project = draft / "project"
        for target, source in files.items():
            content = source.read_bytes()
            if str(target) in _NAMED_FILES:
                content = content.replace(_NAME.encode(), name.encode())
            (project / target).parent.mkdir(parents=True, exist_ok=True)
            write_whole(project / target, content)
        place_folder(project, directory)


def _unpublished() -> list[str]:
    """Say where pip finds a version that is not on PyPI."""
    if ".dev" not in __version__:
        return []
    return [
        f"Version {__version__} is not on PyPI. In another environment than this one, pip "
        "also needs `--find-links` and the folder of its wheels."
    ]


def _stack_name(directory: Path) -> str:
    """Return the name of the folder as CloudFormation and npm accept it."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", Path(os.path.realpath(directory)).name).strip("-").lower()
    if not name[:1].isalpha() or len(name) > _LONGEST_STACK_NAME:
        raise InvalidValueError(
            f"{directory}: the name of the folder becomes the name of the stack, so it must begin "
            f"with a letter and have at most {_LONGEST_STACK_NAME} characters, "
            f'got "{name}"; choose another name'
        )
    return name


def _refuse_content(directory: Path) -> None:
    if directory.is_dir():
        remove_abandoned(directory)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise InvalidValueError(
            f"{directory}: exists and is not an empty folder; choose another name"
        )


def shared_files(names: Collection[str], project: str) -> dict[str, str]:
    """Return files of the template that other generated projects use too, by their path."""
    files = {
        str(target): source.read_text(encoding="utf-8") for target, source in _files_of(_TEMPLATE)
    }
    return {name: files[name].replace(_NAME, project) for name in names}


def _files(example: str | None) -> dict[Path, Path]:
    """Map each path in the project to its source.

    The files of an example replace those of the template.
    """
    if example is None:
        return dict(_files_of(_TEMPLATE))
    template = {path: source for path, source in _files_of(_TEMPLATE) if path.parts[0] != "models"}
    models = {"models" / path: source for path, source in _files_of(_models_of(example))}
    return {**template, **dict(_files_of(_EXAMPLES / example)), **models}


def _models_of(example: str) -> Path:
    """Return the folder of an example's models.

    They are in its folder. Those of ``digits`` are there in the wheel only, and in ``assets`` of a
    checkout.
    """
    packed = _EXAMPLES / example / "models"
    return packed if packed.is_dir() else Path(__file__).parents[6] / _REPOSITORIES / example


def _files_of(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the path in the project and the source of each file of a folder."""
    for source in sorted(folder.rglob("*")):
        path = source.relative_to(folder)
        if not source.is_file() or "__pycache__" in path.parts:
            continue
        first, *rest = path.parts
        yield Path(f".{first}" if first in _WITH_DOT else first, *rest), source
