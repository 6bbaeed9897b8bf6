"""Runs the commands of a page and prints them with their output, for the blocks that ``cog``
writes.

A block of a page::

    <!-- [[[cog
    console.run("constructs-triton check models")
    ]]] -->
    <!-- [[[end]]] -->
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from difflib import SequenceMatcher
from pathlib import Path
from tempfile import mkdtemp

PROJECT = Path(__file__).parents[2]
#: Values that differ from run to run. The check of a page compares what is left without them.
CHANGING = re.compile(
    r"\d\d\d\d-\d\d-\d\d \d\d:\d\d:\d\d|\b\d{1,2}:\d\d:\d\d [AP]M\b"
    r"|\| +\d+(?:/\d+)? \|"
    r"|-[A-Z0-9]{12}\b|-[a-z0-9]{12}(?=/)"
    r"|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b"
    r"|\b\d+(?:\.\d+)? ?(?:ms|s|seconds|MiB)\b"
    r"|-?\d+\.\d+(?:e-?\d+)?"
)
#: The language of a shown file, by the ending of its name.
LANGUAGES = {".py": "python", ".json": "json", ".mjs": "javascript", ".sh": "bash"}
#: What a long rehearsal writes to a log, depending on the time.
_PROGRESS = re.compile(r"(deploying|deleting|letting) .* \.\.\.$")
_COLORS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_START_SECONDS = 90
#: The consoles of all pages. The threads of a simulated account keep the process running until it
#: is closed.
OPEN: list[Console] = []
_PORT = 8080
"""The default of ``local up``. The pages show commands as a reader writes them, without a port."""


class Console:
    """A shell in a new folder. Each call prints one block of the page.

    ``files`` is a folder with the files that :meth:`show` copies. ``width`` is that of the
    terminal: longer lines are continued on the next one.
    """

    def __init__(
        self, files: str | None = None, *, folder: str = "work", width: int | None = None
    ) -> None:
        self._width = width
        self._files = PROJECT / files if files else PROJECT
        self.folder = Path(mkdtemp(prefix="documentation-")) / folder
        self.folder.mkdir()
        self.environment = _environment()
        self._started: list[subprocess.Popen[str]] = []
        self._closing: list[Callable[[], object]] = []
        OPEN.append(self)

    def close(self) -> None:
        """End everything that was started, and delete the folder."""
        self.stop()
        for close in self._closing:
            close()
        self._closing.clear()
        shutil.rmtree(self.folder.parent, ignore_errors=True)

    @staticmethod
    def close_all() -> None:
        """End what the pages have started and not closed."""
        for console in OPEN:
            console.close()
        OPEN.clear()

    def show(self, name: str, *, source: str = "") -> None:
        """Copy a file into the folder and print it. ``source`` is its name in ``files`` where it
        differs.

        If the page has shown the file before, the lines that are new are marked.
        """
        text = (self._files / (source or name)).read_text(encoding="utf-8")
        place, language = self.folder / name, LANGUAGES.get(Path(name).suffix, "text")
        marks = _new_lines(place.read_text(encoding="utf-8"), text) if place.exists() else ""
        place.write_text(text, encoding="utf-8")
        print(f'\n```{language} title="{name}"{marks}\n{text.rstrip()}\n```\n')

    def run(self, command: str, *, keep: str = "", status: int = 0, shown: str = "") -> None:
        """Run a command and print it with its output.

        ``keep`` is a pattern of the lines to print. ``status`` is the expected exit code. ``shown``
        is what the page shows in place of the command.
        """
        self._print(shown or command, self._output(command, status), keep)

    def prepare(self, command: str) -> None:
        """Run a command that the page does not show."""
        self._output(command, 0)

    def _output(self, command: str, status: int) -> str:
        done = subprocess.run(
            command,
            shell=True,
            cwd=self.folder,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=300,
        )
        if done.returncode != status:
            raise RuntimeError(f"{command}: exit code {done.returncode}\n{done.stdout}")
        return done.stdout

    def start(self, command: str, *, until: str, keep: str = "") -> None:
        """Start a command, print what it writes until a line contains ``until``, and leave it
        running.

        ``keep`` is a pattern of the lines to print.
        """
        _wait_until_free(_PORT)
        log = self.folder.parent / f"{len(self._started)}.log"
        with log.open("w", encoding="utf-8") as output:
            process = subprocess.Popen(
                shlex.split(command),
                cwd=self.folder,
                env=self.environment,
                text=True,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._started.append(process)
        self._print(command, _read_until(log, until, process), keep)

    def stop(self) -> None:
        """End what was started, as Ctrl-C does."""
        for process in self._started:
            process.send_signal(signal.SIGINT)
        for process in self._started:
            process.wait(60)
        self._started.clear()

    def use_simulated_account(self) -> None:
        """Let the next commands call an AWS account that is simulated on this machine."""
        sys.path.insert(0, str(PROJECT / "tests" / "e2e"))
        from cdk_rehearse import SimulatedAccount  # noqa: PLC0415 - it starts moto

        account = SimulatedAccount()
        account.__enter__()
        self._closing.append(lambda: account.__exit__(None, None, None))
        self.environment = _environment(account.environment())
        bootstrap = ["cdk", "bootstrap", f"aws://{account.api.account}/us-east-1"]
        subprocess.run(
            bootstrap, cwd=self.folder, env=self.environment, capture_output=True, check=True
        )

    def _print(self, command: str, output: str, keep: str) -> None:
        text = _COLORS.sub("", output).replace(str(self.folder), "~/digits").rstrip()
        lines = [line.rstrip() for line in text.splitlines() if not _PROGRESS.match(line)]
        kept = [
            part for line in lines if re.search(keep, line) for part in folded(line, self._width)
        ]
        while kept and not kept[0]:
            kept = kept[1:]
        print("\n".join(["", "```console", f"$ {command}", *kept, "```", ""]))


def folded(line: str, width: int | None) -> list[str]:
    """Return the lines on which a line continues that is wider than a terminal."""
    if width is None or len(line) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False)


def same(first: str, second: str) -> bool:
    """Return whether two pages differ only in what changes from run to run, such as times."""
    return _stable(first) == _stable(second)


def _stable(text: str) -> list[str]:
    return sorted(re.sub(r"[ ─━]+", " ", CHANGING.sub("?", line)) for line in text.splitlines())


def _environment(base: Mapping[str, str] = os.environ) -> dict[str, str]:
    paths = [
        str(Path(sys.executable).parent),
        str(PROJECT / "node_modules" / ".bin"),
        base.get("PATH", ""),
    ]
    return {
        **{name: value for name, value in base.items() if not name.startswith("PYTEST")},
        "PATH": os.pathsep.join(paths),
        "PYTHONPATH": str(PROJECT),
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "CI": "true",
        "CDK_VALIDATION": "false",  # takes two thirds of a synth, and prints nothing for these apps
    }


def _wait_until_free(port: int) -> None:
    """Wait while another program uses the port.

    After a while, the command itself says what is wrong.
    """
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return
        time.sleep(1)


def _read_until(log: Path, until: str, process: subprocess.Popen[str]) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while until not in (text := log.read_text(encoding="utf-8")):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{process.args!r} did not print {until!r}:\n{text}")
        time.sleep(0.1)
    return text


def _new_lines(before: str, after: str) -> str:
    """Return the fence's attribute that marks the lines that ``after`` adds."""
    changes = SequenceMatcher(None, before.splitlines(), after.splitlines()).get_opcodes()
    lines = [
        f"{first + 1}-{last}"
        for kind, _, _, first, last in changes
        if kind in ("insert", "replace")
    ]
    return f' hl_lines="{" ".join(lines)}"' if lines else ""
