"""``constructs-triton check``: find the errors in a model repository."""

from __future__ import annotations

import argparse
import json
import os
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from constructs_triton.errors import InvalidValueError
from constructs_triton.findings import Finding, Severity
from constructs_triton.untrusted.regular_files import read_regular

if TYPE_CHECKING:
    from constructs_triton.model_config import Report

EXIT_FINE, EXIT_ERRORS = 0, 1
_COLOURS = {Severity.ERROR: "\x1b[1;31m", Severity.WARNING: "\x1b[1;33m"}
_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"


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
        "--gpus", type=_count, metavar="N", help="number of NVIDIA GPUs of the instance, 0 for a CPU instance"
    )
    parser.add_argument(
        "--image-version", type=_version, metavar="V", help="version of the Triton image, for example 26.05"
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
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    parser.add_argument(
        "--server",
        action="store_true",
        help="also load every model in the Triton server of nvidia-pytriton and print its answers",
    )


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must be 0 or more, got {text}")
    return value


def _version(text: str) -> str:
    from constructs_triton.facts.versions import parse_version  # noqa: PLC0415 - only with the option

    try:
        parse_version(text, "--image-version")
    except InvalidValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


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
    from constructs_triton.model_config.target import Target  # noqa: PLC0415 - not for --help
    from constructs_triton.model_repository.repository import ModelRepository  # noqa: PLC0415

    target = Target(
        mode=arguments.endpoint or "single",
        gpu_count=arguments.gpus,
        image_version=arguments.image_version,
        default_model=arguments.default_model,
        local_files=not arguments.no_files,
    )
    repository = ModelRepository.from_directory(arguments.path)
    has_front_end = arguments.endpoint is not None or arguments.default_model is not None
    return repository.check(target, is_packed=False, front_end=has_front_end, is_archive=arguments.archive)


def _ask_server(arguments: argparse.Namespace) -> dict[str, str]:
    from constructs_triton.local.server_check import ask_server  # noqa: PLC0415 - asyncio, and the server itself

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
    print(json.dumps(document, indent=2))


def _print_text(report: Report, root: Path, answers: dict[str, str] | None) -> None:
    paint = _painter()
    for finding in report.findings:
        print("\n".join(_block(finding, root, paint)))
    print(paint(_summary(report), _BOLD))
    for line in report.not_checked:
        print(f"  {_visible(line)}")
    for name, answer in (answers or {}).items():
        print(f"server: {name}: {answer}")


class _Painter:
    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled

    def __call__(self, text: str, colour: str) -> str:
        return f"{colour}{text}{_RESET}" if self.enabled else text


def _painter() -> _Painter:
    """Colour on a terminal, unless ``NO_COLOR`` is set (https://no-color.org)."""
    return _Painter(
        sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def _block(finding: Finding, root: Path, paint: _Painter) -> list[str]:
    severity = paint(f"{finding.severity.value}[{finding.code}]", _COLOURS[finding.severity])
    lines = [f"{paint(finding.location, _BOLD)}: {severity}: {_visible(finding.message)}"]
    lines += _excerpt(finding, root, paint)
    if finding.hint:
        lines.append(f"    {paint('hint:', _BOLD)} {_visible(finding.hint)}")
    return lines


def _excerpt(finding: Finding, root: Path, paint: _Painter) -> list[str]:
    """Return the line of a finding with a caret below the column; a long line is cut."""
    if finding.line is None:
        return []
    lines = _lines(root / finding.path)
    if finding.line > len(lines):
        return []
    text, column = lines[finding.line - 1].rstrip("\r"), (finding.column or 1) - 1
    start = max(0, column - 60)
    shown = _visible(text[start : start + 100])
    caret = paint("^", _COLOURS[finding.severity])
    gutter = f"{finding.line:>4} | "
    return [f"{paint(gutter, _DIM)}{shown}", " " * len(gutter) + " " * (column - start) + caret]


@lru_cache(maxsize=1)
def _lines(path: Path) -> list[str]:
    """Return the lines of a file; the findings of a file follow each other."""
    try:
        return read_regular(path).decode("utf-8", "replace").split("\n")
    except OSError:
        return []


def _visible(text: str) -> str:
    """Replace control characters. A tab becomes one blank, so that the caret is in the right column."""
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
