"""``constructs-triton pack``: write the archives of a model repository."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from constructs_triton_core.errors import InvalidValueError, RepositoryError
from constructs_triton_core.program.argument_types import add_common, whole_number

# Its names are imported on first use, so --help loads no compression.
from constructs_triton_core.untrusted.terminal import print_json, print_lines, print_note, show_work
from constructs_triton_core.visible_text import visible
from triton_model_check import model_repository
from triton_model_check.artifacts import environments
from triton_model_check.cli.tensor_options import add_called_models, called_models

if TYPE_CHECKING:
    from triton_model_check.model_repository import ModelRepository
    from triton_model_check.model_repository.packing import PackedArchive, Progress

_SILENT_BYTES = 64 << 20  # less is packed in a fraction of a second, too fast for a progress bar


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Write a model repository as .tar.gz archives, as SageMaker expects them: one archive for "
        "each top-level model, an ensemble together with its steps. "
        "The same content gives the same bytes."
    )
    parser.add_argument("path", type=Path, metavar="PATH", help="the model repository")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder of the archives; may be new",
    )
    parser.add_argument(
        "--model",
        action="append",
        dest="models",
        metavar="NAME",
        help="pack only this model, an ensemble with its steps; repeat it for several models",
    )
    add_called_models(parser)
    parser.add_argument("--one", action="store_true", help="write one archive with all models")
    parser.add_argument(
        "--level",
        type=whole_number(),
        choices=range(4),
        default=2,
        help="compression: 0 none, 1 fastest, 3 smallest (default: 2)",
    )
    parser.add_argument(
        "--no-check", action="store_true", help="pack models even if the check finds errors"
    )
    parser.add_argument(
        "--no-cache",
        action="store_true",
        help="neither read nor write the cache in your home folder",
    )
    add_common(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    """Pack, and print the archives."""
    if arguments.output.name.endswith((".gz", ".tgz")):
        raise InvalidValueError(
            f'--output: must be a folder, got "{arguments.output}"; pass -o '
            f"{arguments.output.parent}, to which each model is written as MODEL.tar.gz"
        )
    repository = model_repository.ModelRepository.from_directory(
        arguments.path, calls=called_models(arguments)
    )
    placed = environments.as_packed(repository)
    if not arguments.no_check:
        _refuse_errors(placed, arguments.path)
    archives = {
        name: _pack(placed, models, name, arguments)
        for name, models in _plan(repository, arguments.models, one=arguments.one).items()
    }
    _print(archives, as_json=arguments.json)
    return 0


def _refuse_errors(repository: ModelRepository, path: Path) -> None:
    with show_work(f"checking {path}"):
        report = repository.check()
        errors = repository.errors_after_packing(report)
    if errors:
        raise RepositoryError(str(path), errors)
    for warning in report.warnings:
        print_note(*f"warning[{warning.code}] {warning}".split("\n"))


def _plan(
    repository: ModelRepository, wanted: list[str] | None, *, one: bool
) -> Mapping[str, list[str]]:
    """The models of each archive, by the archive's name without its suffix."""
    names = sorted(set(wanted)) if wanted else repository.top_level_models()
    if not names:
        raise InvalidValueError(
            f"{repository.path}: contains no model; pass a folder with one subfolder per model"
        )
    closures = {name: repository.closure(name) for name in names}
    if not one:
        return closures
    everything = {model for closure in closures.values() for model in closure}
    return {repository.path.resolve().name if len(names) > 1 else names[0]: sorted(everything)}


def _pack(
    repository: ModelRepository, models: list[str], name: str, arguments: argparse.Namespace
) -> PackedArchive:
    """Pack models into the archive of a name, with a progress bar."""
    with _progress_bar(name) as on_progress:
        return model_repository.pack(
            repository,
            models,
            arguments.output,
            archive_name=f"{name}.tar.gz",
            compression_level=arguments.level,
            use_cache=not arguments.no_cache,
            on_progress=on_progress,
        )


@contextmanager
def _progress_bar(name: str) -> Iterator[Progress | None]:
    """Show a progress bar on standard error if it is a terminal and there is much to pack."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}.tar.gz", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(visible(name), visible=False)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, visible=total > _SILENT_BYTES)

        yield show


def _print(archives: Mapping[str, PackedArchive], *, as_json: bool) -> None:
    """Print the path and the digest of each archive."""
    if not as_json:
        # The digest is that of the content, not of the file as sha256sum prints it.
        print_lines(*(f"{archive.path}  content {archive.digest}" for archive in archives.values()))
        return
    rows = [
        {
            "name": name,
            "path": str(archive.path),
            "digest": archive.digest,
            "size_bytes": archive.size_bytes,
            "unpacked_size_bytes": archive.unpacked_size_bytes,
        }
        for name, archive in archives.items()
    ]
    print_json({"archives": rows})
