"""``constructs-triton check``: find the errors in a model repository."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.findings import Finding, Severity, Verdict
from constructs_triton_core.program.argument_types import add_common, version_argument, whole_number
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS, EXIT_WRONG
from constructs_triton_core.spelling import quoted
from constructs_triton_core.untrusted.regular_files import read_regular
from constructs_triton_core.untrusted.terminal import Line, print_json, print_lines, show_work
from triton_model_check.artifacts.environments.placement import find_environments, with_environments
from triton_model_check.artifacts.environments.python_environment import EnvironmentNotBuiltError
from triton_model_check.cli.tensor_options import add_called_models, called_models
from triton_model_check.model_config.report import Report
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository.repository import ModelRepository

_COLOURS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33"}
_BOLD, _DIM = "1", "2"
#: Warnings about models that load only in an image that contains more than AWS's.
_MISSING_IMPORT = "python-import-missing"
_DEPENDS_ON_IMAGE = (_MISSING_IMPORT, "python-environment-elsewhere")
AskServer = Callable[[Path], dict[str, str]]
"""Returns what a Triton server says of each model of a folder."""
_ENDPOINTS = {"single": "single-model endpoint", "multi-model": "multi-model endpoint"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Check a model repository by the rules of Triton and SageMaker. Prints every error with its file, "
        "line and fix. Exit code 1 if there are errors; warnings do not count. What "
        "triton-models.toml in PATH declares about the models applies too."
    )
    parser.add_argument("path", metavar="PATH", help="a folder with one subfolder per model")
    parser.add_argument(
        "--endpoint",
        choices=("single", "multi-model", "none"),
        help="type of the SageMaker endpoint; none checks only Triton's rules (default: multi-model for "
        "several models that do not need each other, else single)",
    )
    parser.add_argument(
        "--gpus",
        type=whole_number(RangeLimit(0, None)),
        metavar="N",
        help="number of NVIDIA GPUs of the instance, 0 for a CPU instance",
    )
    parser.add_argument(
        "--instance-type",
        metavar="TYPE",
        help="instance type of the endpoint: its GPUs, memory and disk are checked too, and the GPU of plans",
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
    add_common(parser, "--json")


def run(arguments: argparse.Namespace, ask_server: AskServer | None = None) -> int:
    """Check and print; return 1 if there are errors, else 0.

    Args:
        arguments: Those of the command.
        ask_server: Loads the models of a folder in a server. Default: no server is asked.
    """
    with show_work(f"checking {arguments.path}"):
        checked = _check(arguments)
    answers = None if ask_server is None else ask_server(Path(arguments.path))
    if arguments.json:
        _print_json(checked, answers)
    else:
        _print_text(checked, Path(arguments.path), answers)
    return EXIT_SUCCESS if checked.report.verdict is Verdict.LOADS else EXIT_WRONG


# --- the endpoint -----------------------------------------------------------------------------------------


class _Checked(NamedTuple):
    """A report, the type of the endpoint that it is for, and the default model of each such endpoint."""

    report: Report
    endpoint: str
    default_models: tuple[str, ...] = ()


def _check(arguments: argparse.Namespace) -> _Checked:
    """Check the models as they are packed, with the environments of ``triton-models.toml``."""
    repository = ModelRepository.from_directory(arguments.path, calls=called_models(arguments))
    try:
        placed = repository if arguments.no_files else with_environments(repository)
    except EnvironmentNotBuiltError as error:
        return _without_imports(_check_repository(repository, arguments), repository, str(error))
    return _check_repository(placed, arguments)


def _without_imports(checked: _Checked, repository: ModelRepository, problem: str) -> _Checked:
    """Return what was found without missing imports of models whose environment was not built here."""
    models, report = find_environments(repository), checked.report
    kept = [
        each
        for each in report.findings
        if not (each.code == _MISSING_IMPORT and each.path.partition("/")[0] in models)
    ]
    not_checked = (*report.not_checked, f"not checked: {problem}")
    return checked._replace(report=replace(report, findings=tuple(kept), not_checked=not_checked))


def _check_repository(repository: ModelRepository, arguments: argparse.Namespace) -> _Checked:
    target = _target(arguments)
    check = partial(repository.check, is_packed=False, is_archive=arguments.archive)
    if arguments.endpoint == "none":
        return _Checked(check(target, front_end=False), "none")
    if arguments.endpoint == "multi-model":
        return _Checked(check(replace(target, mode="multi-model")), "multi-model")
    if arguments.endpoint == "single" or arguments.default_model is not None:
        given = () if arguments.default_model is None else (arguments.default_model,)
        return _Checked(check(target), "single", given)
    return _check_derived(repository, check, target, is_archive=arguments.archive)


def _target(arguments: argparse.Namespace) -> Target:
    target = Target(
        gpu_count=arguments.gpus,
        image_version=arguments.image_version,
        default_model=arguments.default_model,
        local_files=not arguments.no_files,
    )
    if arguments.instance_type is None:
        return target
    instance = InstanceType.of(arguments.instance_type)
    return replace(
        target,
        gpu_count=instance.gpus if arguments.gpus is None else arguments.gpus,
        gpu_memory_mib=instance.gpu_memory_mib,
        gpu_model=instance.gpu_model,
        compute_capability=instance.compute_capability,
        memory_gib=instance.memory_gib,
        storage_gb=instance.local_storage_gb or None,
    )


def _check_derived(
    repository: ModelRepository, check: Callable[..., Report], target: Target, *, is_archive: bool
) -> _Checked:
    """Check for the endpoint that the folder fits.

    Several models that do not need each other fit a multi-model endpoint, unless only an endpoint for each of
    them can serve them all.
    """
    names = repository.top_level_models()
    if repository.root_model is not None and is_archive:
        return _Checked(check(replace(target, mode="multi-model")), "multi-model")
    if repository.root_model is not None or not names:  # the layout is wrong
        return _Checked(check(target, front_end=False), "none")
    if len(names) == 1:
        return _Checked(check(replace(target, default_model=names[0])), "single", (names[0],))
    together = _Checked(check(replace(target, mode="multi-model")), "multi-model")
    if together.report.errors:
        alone = _check_each(repository, check, target, names)
        if len(alone.report.errors) < len(together.report.errors):
            return alone
    return together


def _check_each(
    repository: ModelRepository, check: Callable[..., Report], target: Target, names: Sequence[str]
) -> _Checked:
    """Check each model with those that it needs for an endpoint of its own."""
    reports = {name: check(replace(target, default_model=name)) for name in names}
    findings: dict[Finding, None] = {}
    for name, report in reports.items():
        own = {".", *repository.closure(name)}
        findings |= {each: None for each in report.findings if each.path.partition("/")[0] in own}
    not_checked = dict.fromkeys(line for report in reports.values() for line in report.not_checked)
    merged = Report(str(repository.path), tuple(findings), tuple(not_checked))
    return _Checked(merged, "single", tuple(names))


# --- output -----------------------------------------------------------------------------------------------


def _print_json(checked: _Checked, answers: dict[str, str] | None) -> None:
    report = checked.report
    document: dict[str, object] = {
        "endpoint": checked.endpoint,
        "default_models": list(checked.default_models),
        "verdict": report.verdict,
        "findings": [finding.to_dict() for finding in report.findings],
        "not_checked": list(report.not_checked),
    }
    if answers is not None:
        document["server"] = answers
    print_json(document)


def _print_text(checked: _Checked, root: Path, answers: dict[str, str] | None) -> None:
    report = checked.report
    for finding in report.findings:
        print_lines(*_block(finding, root))
    print_lines([(_summary(checked), _BOLD)])
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


def _summary(checked: _Checked) -> str:
    report, where = checked.report, _where(checked)
    counts = f"{_plural(len(report.errors), 'error')}, {_plural(len(report.warnings), 'warning')}"
    is_open = report.not_checked or any(each.code in _DEPENDS_ON_IMAGE for each in report.warnings)
    if report.verdict is Verdict.LOADS and is_open:
        return f"{counts}: Triton accepts what was checked{where}"
    return f"{counts}: {report.verdict.words}{where}"


def _where(checked: _Checked) -> str:
    """Return the endpoint in words."""
    names = quoted(checked.default_models)
    if checked.endpoint == "none":
        return "" if checked.report.errors else "; SageMaker's rules were not checked"
    if len(checked.default_models) > 1:
        return f" on single-model endpoints, one for each of {names}"
    return f" on a {_ENDPOINTS[checked.endpoint]}" + (f" of {names}" if checked.default_models else "")


def _plural(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
