"""Asks the checker, as a user does: with its command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from foreign_models.verdicts import Said

_COMMAND = Path(sys.executable).with_name("triton-model-check")
_SECONDS = 900
_PROCESSES = 2
_REPOSITORIES_OF_A_CALL = 12
#: What the command prints for something wrong; 2 means that it could not look.
_LOOKED_AT = (0, 1)
RUNTIME_OPTION = "--onnx-runtime"


def check(repositories: Sequence[Path], image: str, onnx_runtime: str) -> dict[Path, Said]:
    """Return what the checker says of each repository for an image."""
    size = _REPOSITORIES_OF_A_CALL
    starts = range(0, len(repositories), size)
    groups = [repositories[start : start + size] for start in starts]
    with ThreadPoolExecutor(_PROCESSES) as pool:
        answers = pool.map(lambda group: _checked(group, image, onnx_runtime), groups)
        return {path: said for answer in answers for path, said in answer.items()}


def _checked(group: Sequence[Path], image: str, onnx_runtime: str) -> dict[Path, Said]:
    target = ["--target", "server", "--image-version", image, "--gpus", "0", "--json"]
    done = _run(["check", *map(str, group), *target, *_runtime_arguments(("check",), onnx_runtime)])
    report = _json(done.stdout)
    if done.returncode not in _LOOKED_AT or report is None:
        if len(group) > 1:
            alone = [_checked([path], image, onnx_runtime) for path in group]
            return {path: said for answer in alone for path, said in answer.items()}
        return {group[0]: Said("failed", _last_line(done))}
    reports = report.get("repositories", [report])
    return dict(zip(group, map(_said, reports), strict=True))


def _said(report: Mapping[str, Any]) -> Said:
    findings = sorted(report["findings"], key=lambda finding: finding["severity"])
    texts = [f"{each['severity']} {each['code']}: {each['message']}" for each in findings]
    unlooked = [_text(each) for each in report["not_checked"]]
    text = "; ".join([*texts[:2], *unlooked[:1]])[:300]
    # "Accepts what was checked" is no verdict about what was not.
    if report["verdict"] == "loads" and unlooked:
        return Said("unknown", text)
    return Said(report["verdict"], text)


def _text(unlooked: object) -> str:
    return unlooked if isinstance(unlooked, str) else json.dumps(unlooked)


def model_new(file: Path, repository: Path, onnx_runtime: str) -> Mapping[str, Any] | Said:
    """Create a model from a file; return its configuration, or why there is none."""
    arguments = ["model", "new", str(file), "--name", "m", "-o", str(repository), "--json"]
    done = _run([*arguments, *_runtime_arguments(("model", "new"), onnx_runtime)])
    report = _json(done.stdout)
    if done.returncode == 0 and report is not None:
        config: Mapping[str, Any] = report["config"]
        return config
    if done.returncode in (*_LOOKED_AT, 2) and report is not None and "error" in report:
        return Said("rejected", str(report["error"])[:300])
    return Said("failed", _last_line(done))


@cache
def _options(command: tuple[str, ...]) -> str:
    return _run([*command, "--help"]).stdout


def _runtime_arguments(command: tuple[str, ...], onnx_runtime: str) -> Iterable[str]:
    """Return the option for ONNX Runtime; a command that asks no ONNX Runtime does not have it."""
    return (
        [RUNTIME_OPTION, onnx_runtime]
        if onnx_runtime and RUNTIME_OPTION in _options(command)
        else []
    )


def _run(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command = [str(_COMMAND), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)


def _json(text: str) -> dict[str, Any] | None:
    try:
        report: dict[str, Any] = json.loads(text)
    except ValueError:
        return None
    return report


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    lines: Iterator[str] = iter([*(done.stderr or done.stdout).strip().splitlines()[-1:], ""])
    return f"exit code {done.returncode}: {next(lines)}"
