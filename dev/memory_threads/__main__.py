"""Rebuilds public threads, and prints the checker's calculation beside what their authors saw.

    PYTHONPATH=dev .venv/bin/python -m memory_threads [--keep FOLDER] [THREAD ...]

``THREAD`` is a part of a thread's name, such as ``server#5661``. The repositories are written below
a folder that is deleted afterwards, or below ``--keep``. An option that the checker does not have
is printed. The exit status is 1 if the calculation does not report what a thread expects.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from memory_threads.building import write_repository

_THREADS = Path(__file__).with_name("threads.toml")
_CHECK = [sys.executable, "-m", "triton_model_check", "check"]


def main() -> int:
    """Rebuild the threads that the arguments name, all by default."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the repositories here")
    parser.add_argument("names", nargs="*", metavar="THREAD", help="a part of a thread's name")
    arguments = parser.parse_args()
    help_text = _run([*_CHECK, "--help"]).stdout
    threads = _chosen(arguments.names)
    agreeing = 0
    with tempfile.TemporaryDirectory() as folder:
        for thread in threads:
            parent = (arguments.keep or Path(folder)) / thread["id"].replace("/", "+")
            write_repository(thread, parent / "models")
            agreeing += _report(thread, parent / "models", help_text)
    print(f"{agreeing} of {len(threads)} threads are calculated as expected")
    return 0 if agreeing == len(threads) else 1


def _chosen(names: Iterable[str]) -> list[dict[str, Any]]:
    threads: list[dict[str, Any]] = tomllib.loads(_THREADS.read_text("utf-8"))["thread"]
    wanted = list(names)
    if not wanted:
        return threads
    return [thread for thread in threads if any(name in thread["id"] for name in wanted)]


def _report(thread: Mapping[str, Any], repository: Path, help_text: str) -> bool:
    """Print one thread and return whether the calculation reports what it expects."""
    options, missing = _options(thread, help_text)
    answer = _run([*_CHECK, str(repository), *options, "--json"])
    findings = _memory_findings(json.loads(answer.stdout))
    found = sorted({_limit(finding["code"]) for finding in findings}) or ["fits"]
    is_as_expected = thread["expected"] in found

    print(f"{thread['id']}: expected {thread['expected']}, calculated {', '.join(found)}")
    print(f"  asked: {thread['asks']}")
    print(f"  saw: {thread['saw']}")
    for finding in findings:
        print(f"  {finding['severity']} [{finding['code']}]: {finding['message']}")
    if "not_counted" in thread:
        print(f"  not counted: {thread['not_counted']}")
    for assumption in thread["assumed"]:
        print(f"  assumed: {assumption}")
    for option in missing:
        print(f"  the checker has no option {option}")
    return is_as_expected


def _options(thread: Mapping[str, Any], help_text: str) -> tuple[list[str], list[str]]:
    """Return the options of the checker for a thread, and those that it does not have."""
    wanted = {
        "--target": thread.get("place"),
        "--image-version": thread.get("image"),
        "--gpus": thread.get("gpus"),
        "--gpu-memory": thread.get("gpu_memory"),
        "--memory": _mebibytes(thread, "memory"),
        "--shm-size": _mebibytes(thread, "shm"),
    }
    options, missing = [], []
    for option, value in wanted.items():
        if value is None:
            continue
        if f"{option} " in help_text:
            options += [option, str(value)]
        else:
            missing.append(option)
    return options, missing


def _mebibytes(thread: Mapping[str, Any], key: str) -> str | None:
    return f"{thread[key]}m" if key in thread else None


def _memory_findings(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    findings: list[dict[str, Any]] = answer["findings"]
    return [
        finding for finding in findings if "memory" in finding["code"] or "shm" in finding["code"]
    ]


def _limit(code: str) -> str:
    """Return which memory a code is about."""
    if "shm" in code or "shared-memory" in code:
        return "shm"
    if "gpu" in code or code.startswith("vllm-"):
        return "gpu"
    return "host"


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
