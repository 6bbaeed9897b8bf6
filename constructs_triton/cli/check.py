"""``constructs-triton check``: find the errors in a model repository."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from constructs_triton.cli.argument_types import (
    add_called_models,
    called_models,
    version_argument,
    whole_number,
)
from constructs_triton.facts.limits import RangeLimit
from constructs_triton.findings import Finding, Severity
from constructs_triton.model_config.report import Report
from constructs_triton.model_config.target import Target
from constructs_triton.model_repository.repository import ModelRepository
from constructs_triton.untrusted.regular_files import read_regular
from constructs_triton.untrusted.terminal import Line, print_json, print_lines

EXIT_FINE, EXIT_ERRORS = 0, 1
_COLOURS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33"}
_BOLD, _DIM = "1", "2"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Check a model repository by the rules of Triton and SageMaker. Prints every error with its file, "
        "line and fix. Exit code 1 if there are errors; warnings do not count."
    )
    parser.add_argument("path", metavar="PATH", help="a folder with one subfolder per model")
    parser.add_argument(
        "--endpoint",
        choices=("single", "multi-model"),
        help="type of the SageMaker endpoint; adds SageMaker's rules (default: only Triton's rules)",
    )
    parser.add_argument(
        "--gpus",
        type=whole_number(RangeLimit(0, None)),
        metavar="N",
        help="number of NVIDIA GPUs of the instance, 0 for a CPU instance",
    )
    parser.add_argument(
        "--image-version",
        type=version_argument,
        metavar="V",
        help="version of the Triton image, for example 26.05",
    )
    parser.add_argument(
        "--default-model",
        metavar="NAME",
        help="model that a single-model endpoint serves (SAGEMAKER_TRITON_DEFAULT_MODEL_NAME)",
    )
    parser.add_argument(
        "--no-files",
        action="store_true",
        help="check only the configurations; for weights and version folders that are stored elsewhere",
    )
    parser.add_argument(
        "--archive",
        action="store_true",
        help="PATH is the content of one archive, not a repository that becomes several archives",
    )
    add_called_models(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    parser.add_argument(
        "--server",
        action="store_true",
        help="load every model in the Triton server of nvidia-pytriton too, and print whether each loads",
    )


def run(arguments: argparse.Namespace) -> int:
    """Check and print; return 1 if there are errors, else 0."""
    report = _check(arguments)
    answers = _ask_server(arguments) if arguments.server else None
    if arguments.json:
        _print_json(report, answers)
    else:
        _print_text(report, Path(arguments.path), answers)
    return EXIT_ERRORS if report.errors else EXIT_FINE


def _check(arguments: argparse.Namespace) -> Report:
    target = Target(
        mode=arguments.endpoint or "single",
        gpu_count=arguments.gpus,
        image_version=arguments.image_version,
        default_model=arguments.default_model,
        local_files=not arguments.no_files,
    )
    repository = ModelRepository.from_directory(arguments.path, calls=called_models(arguments))
    has_front_end = arguments.endpoint is not None or arguments.default_model is not None
    return repository.check(target, is_packed=False, front_end=has_front_end, is_archive=arguments.archive)


def _ask_server(arguments: argparse.Namespace) -> dict[str, str]:
    from constructs_triton.local.server_check import ask_server

    return ask_server(Path(arguments.path))


# --- output -----------------------------------------------------------------------------------------------


def _print_json(report: Report, answers: dict[str, str] | None) -> None:
    document: dict[str, object] = {
        "verdict": report.verdict,
        "findings": [finding.to_dict() for finding in report.findings],
        "not_checked": list(report.not_checked),
    }
    if answers is not None:
        document["server"] = answers
    print_json(document)


def _print_text(report: Report, root: Path, answers: dict[str, str] | None) -> None:
    for finding in report.findings:
        print_lines(*_block(finding, root))
    print_lines([(_summary(report), _BOLD)])
    print_lines(*(f"  {line}" for line in report.not_checked))
    print_lines(*(f"server: {name}: {answer}" for name, answer in (answers or {}).items()))


def _block(finding: Finding, root: Path) -> Iterator[Line]:
    severity = (f"{finding.severity.value}[{finding.code}]", _COLOURS[finding.severity])
    yield [(finding.location, _BOLD), ": ", severity, f": {finding.message}"]
    yield from _excerpt(finding, root)
    if finding.hint:
        yield ["    ", ("hint:", _BOLD), f" {finding.hint}"]


def _excerpt(finding: Finding, root: Path) -> Iterator[Line]:
    """Yield the line of a finding with a caret below the column; a long line is cut."""
    if finding.line is None:
        return
    lines = _lines(root / finding.path)
    if finding.line > len(lines):
        return
    text, column = lines[finding.line - 1].rstrip("\r"), (finding.column or 1) - 1
    start = max(0, column - 60)
    gutter = f"{finding.line:>4} | "
    yield [(gutter, _DIM), _one_column_each(text[start : start + 100])]
    yield [" " * len(gutter) + " " * (column - start), ("^", _COLOURS[finding.severity])]


@lru_cache(maxsize=1)
def _lines(path: Path) -> list[str]:
    """Return the lines of a file; the findings of a file follow each other."""
    try:
        return read_regular(path).decode("utf-8", "replace").split("\n")
    except OSError:
        return []


def _one_column_each(text: str) -> str:
    """Replace control characters by one character each, so that the caret is in the right column."""
    return "".join(
        character if character.isprintable() else " " if character == "\t" else "?" for character in text
    )


def _summary(report: Report) -> str:
    counts = f"{_plural(len(report.errors), 'error')}, {_plural(len(report.warnings), 'warning')}"
    if report.verdict == "rejected":
        return f"{counts}: Triton rejects it"
    accepts = "Triton accepts what was checked" if report.not_checked else "Triton loads it"
    return f"{counts}: {accepts}, but it cannot be served" if report.errors else f"{counts}: {accepts}"


def _plural(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
