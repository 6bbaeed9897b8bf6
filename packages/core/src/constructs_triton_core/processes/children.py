"""Starts child processes, and ends them with this one.

Each child has a session of its own, so Ctrl-C reaches this process alone, which then ends the
child. A small shell, the keeper, ends a child whose parent was killed: the keeper reads a pipe that
only the parent can write to, and which the system closes with the parent. Unlike Linux's signal on
the death of a parent, it works on all systems, and in programs with threads.

Nothing that a child prints reaches the terminal. The caller reads it and prints it with
``untrusted.terminal``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT
from typing import Any, AnyStr

from constructs_triton_core import OWN_PACKAGES

__all__ = [
    "DEVNULL",
    "NO_SETTINGS",
    "PIPE",
    "STDOUT",
    "Child",
    "Finished",
    "foreign_environment",
    "fork_process",
    "forked",
    "own_environment",
    "python_command",
    "run_child",
]

_PASSED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME"),
        *("LANG", "LANGUAGE", "TZ", "NO_COLOR"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT"),
    }
)
# Languages, the coverage of tests, and the settings of the CDK's bindings, such as which Node.js
# they start.
_PASSED_PREFIXES = ("LC_", "COVERAGE_PROCESS_", "JSII_")
# They are set for the Python that runs this program. A tool in Python may have another version.
_NOT_INHERITED = frozenset(
    {
        *("PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONINSPECT"),
        "PYTHONPLATLIBDIR",
        "__PYVENV_LAUNCHER__",
    }
)


def foreign_environment(**more: str) -> dict[str, str]:
    """Return the environment of a child that works on foreign code or data.

    Args:
        **more: Further variables.
    """
    passed = {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED or name.startswith(_PASSED_PREFIXES)
    }
    return passed | more


def own_environment(**more: str) -> dict[str, str]:
    """Return the environment of a tool or server of the user, with proxies, certificates and
    indexes.

    Args:
        **more: Further variables.
    """
    return {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED} | more


NO_SETTINGS = os.path.abspath(os.sep)  # noqa: PTH100 - a string
"""The folder for programs that read settings or modules from where they start: only an
administrator can have put some into it.
"""

_END_SECONDS = 10.0
_PATH_FIRST = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
# `read` fails when the parent has ended. The child has ten seconds for its own cleaning up.
_KEEPER = """
trap '' INT TERM HUP
read -r group && [ "$group" ] || exit
read -r _ && exit
kill -s TERM -- "-$group"
for _ in 1 2 3 4 5 6 7 8 9 10; do
  kill -s 0 -- "-$group" || exit
  sleep 1
done
kill -s KILL -- "-$group"
"""


def python_command(program: str, *arguments: str) -> list[str]:
    """Return the command that runs a program in Python with the import path of this process.

    The current folder is not on the path, so that none of its files takes the place of a module,
    unless a package of this project is imported or installed from there.

    Args:
        program: Statements. ``sys`` is imported.
        *arguments: What ``sys.argv[1:]`` contains.
    """
    return [
        sys.executable,
        "-I",
        "-c",
        _PATH_FIRST + program,
        json.dumps(import_path()),
        *arguments,
    ]


def import_path() -> list[str]:
    """Return the import path of this process without the current folder."""
    try:
        here = os.path.realpath(os.getcwd())  # noqa: PTH109 - Path.cwd() is the same
    except OSError:  # the folder was deleted, so that relative paths mean nothing
        return [each for each in sys.path if os.path.isabs(each)]  # noqa: PTH117 - Path(each) takes longer
    paths = [each for each in sys.path if each and os.path.realpath(each) != here]
    return [here, *paths] if here in _own_roots() or _is_installed(here, paths) else paths


def _is_installed(folder: str, paths: Sequence[str]) -> bool:
    """Return whether a path file of an installation names the folder, as for ``pip install -e``."""
    for path in paths:
        for path_file in Path(path).glob("*.pth"):
            text = path_file.read_text(encoding="utf-8", errors="replace")
            for line in map(str.strip, text.splitlines()):
                if line.startswith("/") and os.path.realpath(line) == folder:
                    return True
    return False


def _own_roots() -> set[str]:
    """Return the folders from which this process has imported the packages of this project."""
    roots = set()
    for name in OWN_PACKAGES:
        # A program may block the import of a module with None in its place.
        module = sys.modules.get(name)
        if module is not None and module.__file__:
            roots.add(os.path.realpath(Path(module.__file__).parents[1]))
    return roots


class Keeper:
    """Ends a process group if this process ends before :meth:`release`, even if it is killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        with suppress(OSError):  # a system without a shell
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _KEEPER],
                stdin=PIPE,
                stdout=DEVNULL,
                stderr=DEVNULL,
                cwd="/",
                env={"PATH": os.defpath},
                start_new_session=True,
            )

    def keep(self, group: int) -> None:
        """Keep a process group, once."""
        self._write(f"{group}\n")

    def release(self) -> None:
        """Forget the group."""
        self._write("\n")
        process, self._process = self._process, None
        if process is not None:
            with suppress(OSError), process:
                pass

    def _write(self, line: str) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            with suppress(OSError):  # the keeper was killed
                self._process.stdin.write(line.encode())
                self._process.stdin.flush()


class Child(subprocess.Popen[AnyStr]):
    """A child process, which ends with this one.

    Args:
        command: The program and its arguments.
        environment: All of its variables: see ``environments``.
        is_kept: Whether a keeper ends it with this process. Not for a program that ends by itself
            when its standard input closes, and needs time for that.
        **options: Those of ``subprocess.Popen``. The standard streams are closed by default.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        is_kept: bool = True,
        **options: Any,
    ) -> None:
        self._keeper = Keeper() if is_kept else None
        streams = {"stdin": DEVNULL, "stdout": DEVNULL, "stderr": DEVNULL}
        try:
            super().__init__(command, env=environment, start_new_session=True, **streams | options)
        except BaseException:
            self._release()
            raise
        if self._keeper is not None:
            self._keeper.keep(self.pid)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process.

        Raises:
            TimeoutError: it did not end in ``timeout`` seconds.
        """
        try:
            code = super().wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(str(error)) from None
        self._release()
        return code

    def end(self) -> None:
        """End the process and those that it started; after ten seconds, or Ctrl-C, by force."""
        self._signal(signal.SIGTERM)
        with suppress(TimeoutError, KeyboardInterrupt):
            self.wait(_END_SECONDS)
        self._signal(signal.SIGKILL)
        self.wait()

    def _signal(self, number: int) -> None:
        with suppress(OSError):  # it has ended
            os.killpg(self.pid, number)

    def _release(self) -> None:
        if self._keeper is not None:
            self._keeper.release()


@dataclass(frozen=True, slots=True)
class Finished:
    """The exit code of a program and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def run_child(
    command: Sequence[str | os.PathLike[str]],
    *,
    seconds: float | None,
    environment: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    stderr: int = PIPE,
) -> Finished:
    """Run a program to its end.

    Args:
        command: The program and its arguments.
        seconds: How long it may take; ``None`` for a tool whose user can interrupt it.
        environment: All of its variables. Default: those of the user's own tools.
        cwd: Its working directory. Default: that of this process.
        stderr: ``STDOUT`` to have both outputs in one.

    Raises:
        OSError: it cannot be started.
        TimeoutError: it took longer; it was ended. This is an ``OSError``, too.
    """
    child: Child[str] = Child(
        [os.fspath(word) for word in command],
        environment=own_environment() if environment is None else environment,
        cwd=cwd,
        stdout=PIPE,
        stderr=stderr,
        encoding="utf-8",
        errors="replace",
    )
    with child:
        try:
            output, errors = child.communicate(timeout=seconds)
        except (TimeoutError, subprocess.TimeoutExpired):
            child.end()
            raise TimeoutError(f"{command[0]} did not finish within {seconds:.0f} s") from None
        except BaseException:
            child.end()
            raise
    return Finished(child.returncode, output, errors or "")


def fork_process() -> int:
    """Fork this process; return the process ID of the copy, and 0 in the copy.

    The threads of this process must wait, and hold no lock that the copy needs.
    """
    with warnings.catch_warnings():
        # Python 3.12 warns in a process with threads.
        warnings.filterwarnings("ignore", ".*use of fork", DeprecationWarning)
        return os.fork()


def forked(function: Callable[[], int]) -> int:
    """Call a function in a copy of this process, which has one thread, and return the copy's
    process ID.

    The exit code of the copy is the function's result, or 1 after an exception, whose traceback it
    prints.
    """
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        code = function()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
