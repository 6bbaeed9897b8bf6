"""``constructs-triton pack``: write the archives of a model repository."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from constructs_triton.errors import InvalidValueError, RepositoryError

if TYPE_CHECKING:
    from constructs_triton.model_repository import ModelRepository, PackedArchive
    from constructs_triton.model_repository.packing import Progress

_SILENT_BYTES = 64 << 20  # less is packed in a fraction of a second, too fast for a progress bar


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Write a model repository as .tar.gz archives, as SageMaker expects them: one archive for each "
        "top-level model, an ensemble together with its steps. The same content gives the same bytes."
    )
    parser.add_argument("path", type=Path, metavar="PATH", help="the model repository")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder for the archives; created if it does not exist",
    )
    parser.add_argument(
        "--model",
        action="append",
        dest="models",
        metavar="NAME",
        help="pack only this model, an ensemble with its steps; repeat it for several models",
    )
    parser.add_argument("--one", action="store_true", help="write one archive with all models")
    parser.add_argument(
        "--level",
        type=int,
        choices=range(4),
        default=2,
        help="compression: 0 none, 1 fastest, 3 smallest (default: 2)",
    )
    parser.add_argument("--no-check", action="store_true", help="pack models even if the check finds errors")
    parser.add_argument(
        "--no-cache", action="store_true", help="neither read nor write the cache in your home folder"
    )
    parser.add_argument("--json", action="store_true", help="print the archives as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Pack, and print the archives."""
    from constructs_triton.model_repository import ModelRepository  # noqa: PLC0415 - not for --help

    repository = ModelRepository.from_directory(arguments.path)
    if not arguments.no_check:
        _refuse_errors(repository)
    archives = {
        name: _pack(repository, models, name, arguments)
        for name, models in _plan(repository, arguments.models, one=arguments.one).items()
    }
    print(_as_json(archives) if arguments.json else _as_lines(archives))
    return 0


def _refuse_errors(repository: ModelRepository) -> None:
    from constructs_triton.model_repository import errors_left_by_packing  # noqa: PLC0415

    report = repository.check()
    errors = errors_left_by_packing(repository, report)
    if errors:
        raise RepositoryError(str(repository.path), errors)
    for warning in report.warnings:
        print(f"warning[{warning.code}] {warning}", file=sys.stderr)


def _plan(repository: ModelRepository, wanted: list[str] | None, *, one: bool) -> Mapping[str, list[str]]:
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
    from constructs_triton.model_repository import pack  # noqa: PLC0415 - not for --help

    with _progress_bar(name) as on_progress:
        return pack(
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
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}.tar.gz", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, visible=False)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, visible=total > _SILENT_BYTES)

        yield show


def _as_json(archives: Mapping[str, PackedArchive]) -> str:
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
    return json.dumps({"archives": rows}, indent=2)


def _as_lines(archives: Mapping[str, PackedArchive]) -> str:
    """A line for each archive. The digest is that of its content, not of the file as sha256sum prints it."""
    return "\n".join(f"{archive.path}  content {archive.digest}" for archive in archives.values())
