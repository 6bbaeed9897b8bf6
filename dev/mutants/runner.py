"""Runs tests against a mutated copy of the project, each time in a process forked from a warm parent."""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from .sample import source_folders

__all__ = ["Run", "Tree", "copy_project", "warm_up"]

# Third-party packages only. aws_cdk is not among them: it starts a Node process that cannot be shared.
_WARM = (
    "aiohttp", "boto3", "google.protobuf.text_format", "hypothesis", "isal.igzip", "jsii", "ml_dtypes",
    "moto.server", "numpy", "pathspec", "rich.table", "syrupy", "tritonclient.grpc.model_config_pb2", "yaml",
)  # fmt: skip


def warm_up() -> None:
    """Import what many tests import, once for all of them."""
    for name in _WARM:
        with suppress(ImportError):
            importlib.import_module(name)


def copy_project(project: Path, target: Path) -> None:
    """Copy the project's own files, and link what is installed beside them."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=project, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (project / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(project / name, target / name)
    for installed in (".venv", "node_modules"):
        if not (target / installed).exists() and (project / installed).exists():
            (target / installed).symlink_to((project / installed).resolve())


@dataclass
class Tree:
    """A copy of the project in which one mutant at a time is tested."""

    folder: Path
    _ticks: int = 0

    def write(self, path: str, source: bytes) -> None:
        """Replace a file, with a modification time that no bytecode was compiled for."""
        self._ticks += 1
        file = self.folder / path
        file.write_bytes(source)
        os.utime(file, (1e9 + self._ticks, 1e9 + self._ticks))

    def start(self, tests: list[str], timeout_seconds: float, *options: str) -> Run:
        """Start the tests in a process of their own."""
        scratch = Path(tempfile.mkdtemp(prefix="mutant-"))
        pid = os.fork()
        if pid == 0:
            _run_tests(self.folder, scratch, options, tests)
        return Run(pid, scratch, time.monotonic() + timeout_seconds)


@dataclass
class Run:
    """Tests that are running."""

    pid: int
    scratch: Path
    deadline: float
    started: float = field(default_factory=time.monotonic)

    def poll(self) -> dict[str, Any] | None:
        """Return the outcome once the run has ended: exit code, failed tests, seconds, output."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        has_timed_out = pid == 0 and time.monotonic() > self.deadline
        if pid == 0 and not has_timed_out:
            return None
        self._kill()
        if has_timed_out:
            os.waitpid(self.pid, 0)
        code = "timeout" if has_timed_out else os.waitstatus_to_exitcode(status)
        failed = self.scratch / "failed"
        outcome = {
            "exit_code": code,
            "failed": failed.read_text().splitlines() if failed.exists() else [],
            "seconds": round(time.monotonic() - self.started, 1),
            "output": (self.scratch / "output").read_text(errors="replace")[-4000:],
        }
        shutil.rmtree(self.scratch, ignore_errors=True)
        return outcome

    def _kill(self) -> None:
        """End what the tests started, in this session of processes."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


class _Failures:
    """A pytest plugin that writes the tests and modules that fail to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._write(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._write(report)

    def _write(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed:
            with self._path.open("a") as file:
                file.write(f"{report.nodeid}\n")


class _Selection:
    """A pytest plugin that runs only these tests; one whose name the mutant changes is left out."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._tests = frozenset(tests)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._tests]


def _run_tests(tree: Path, scratch: Path, options: Sequence[str], tests: Sequence[str]) -> None:
    """Never returns: the process ends with pytest's exit code."""
    code = 99
    try:
        os.setsid()
        output = os.open(scratch / "output", os.O_WRONLY | os.O_CREAT)
        for stream in (1, 2):
            os.dup2(output, stream)
        os.chdir(tree)
        sources = source_folders(tree)
        os.environ.update(
            PYTHONPATH=os.pathsep.join(sources), TMPDIR=str(scratch), PYTHONDONTWRITEBYTECODE=""
        )
        tempfile.tempdir = None
        sys.path[:] = [*sources, *(path for path in sys.path if "dev" not in Path(path).parts)]
        arguments = [
            *options,
            "-q",
            "--tb=short",
            "-W",
            "ignore::pytest.PytestAssertRewriteWarning",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            str(tree),
            *dict.fromkeys(test.split("::")[0] for test in tests),
        ]
        code = int(pytest.main(arguments, plugins=[_Failures(scratch / "failed"), _Selection(tests)]))
    except BaseException:  # the process ends here, whatever happened
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
