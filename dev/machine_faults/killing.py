"""Kills a command at random moments, and looks at what it leaves."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from machine_faults.states import State, drafts_in, half_written, state_of
from machine_faults.writers import Writer

__all__ = ["Outcome", "Place", "kill"]

_KILLED_PROGRAM = Path(__file__).with_name("killed_program.py")
_LONGEST_SECONDS = 300


@dataclass
class Outcome:
    """What the kills of one command have shown.

    ``left`` counts the states: ``before``, ``after`` or ``between``, where some files are new.
    """

    name: str
    seconds: float = 0.0
    changes: int = 0
    left: Counter[str] = field(default_factory=Counter)
    drafts: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        states = ", ".join(f"{count} {name}" for name, count in sorted(self.left.items()))
        return (
            f"{self.name}: {self.left.total()} kills in {self.seconds:.1f} s and {self.changes} "
            f"changes: {states}; {self.drafts} left a draft; {len(self.problems)} problems"
        )


class Place:
    """The folders of a command: where it works, its cache, and its temporary files.

    ``before`` is a command that starts the command, such as one that changes the user.
    """

    def __init__(self, root: Path, writer: Writer, services: Mapping[str, str]) -> None:
        self.work, self.cache, self.temporary = (root / name for name in ("work", "cache", "tmp"))
        self._filled = root / "filled"
        self._writer = writer
        self._services = services
        self.before: tuple[str, ...] = ()
        self._filled.mkdir(parents=True)
        writer.fill(self._filled)

    def reset(self, *, with_cache: bool) -> None:
        """Bring the folders into the state before the command."""
        for folder in (self.work, self.temporary, *([self.cache] if with_cache else [])):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._filled, self.work)
        self.temporary.mkdir()
        self.cache.mkdir(mode=0o700, exist_ok=True)

    def start(self, *, last_change: int | None = None) -> subprocess.Popen[bytes]:
        """Start the command; it is killed at a change of a file, or counts them for 0."""
        writer = self._writer
        words = [self._services.get(word, word) for word in writer.words]
        module = [str(_KILLED_PROGRAM), str(last_change), str(self.temporary / "changes")]
        program = ["-m", writer.module] if last_change is None else [*module, writer.module]
        path = os.pathsep.join((str(self.work), os.environ.get("PYTHONPATH", "")))
        variables = {
            **os.environ,
            **writer.variables,
            **{name: value for name, value in self._services.items() if name.isupper()},
            "CONSTRUCTS_TRITON_CACHE_DIR": str(self.cache),
            "TMPDIR": str(self.temporary),
            "UV_CACHE_DIR": str(self.temporary / "uv"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        if writer.module == "app":
            variables["PYTHONPATH"] = path
        return subprocess.Popen(
            [*self.before, sys.executable, *program, *words],
            cwd=self.work,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def finish(self, process: subprocess.Popen[bytes]) -> str:
        """Wait for the end of a command that is not killed; return what is wrong with it."""
        writer = self._writer
        printed = b""
        if writer.ends_at:
            assert process.stdout is not None
            for line in process.stdout:
                printed += line
                if line.startswith(writer.ends_at.encode()):
                    process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=_LONGEST_SECONDS)
        printed += rest
        if process.returncode in writer.exit_codes:
            return ""
        return f"exit code {process.returncode}: {printed.decode(errors='replace')[-600:]}"

    def state(self) -> State:
        """Return what the folder contains."""
        return state_of(self.work, self._writer.varying)

    def drafts(self) -> list[str]:
        """Return what has the name of a draft, and all temporary files."""
        temporary = [
            f"tmp/{path.name}"
            for path in self.temporary.iterdir()
            if self._writer.module != "app" or path.name.startswith(".")  # jsii leaves its own
        ]
        own = [*drafts_in(self.work), *(f"cache/{path}" for path in drafts_in(self.cache))]
        return [*own, *(path for path in temporary if path not in ("tmp/changes", "tmp/uv"))]


def kill(
    writer: Writer,
    root: Path,
    services: Mapping[str, str],
    *,
    count: int,
    seed: int,
    repeated_each: int = 1,
) -> Outcome:
    """Kill a command ``count`` times: half at a moment, half at a change of a file.

    Args:
        writer: The command.
        root: An empty folder.
        services: What runs beside the command: values of its arguments, and variables.
        count: How often it is killed.
        seed: The seed of the moments.
        repeated_each: How many kills are followed by one run that must succeed.
    """
    chance = random.Random(f"{writer.name} {seed}")
    outcome = Outcome(writer.name)
    place = Place(root, writer, services)
    place.reset(with_cache=True)
    before = place.state()
    begun = time.monotonic()
    if problem := place.finish(place.start(last_change=0)):
        outcome.problems.append(f"without a kill: {problem}")
        return outcome
    outcome.seconds = time.monotonic() - begun
    after = place.state()
    counted = place.temporary / "changes"
    outcome.changes = int(counted.read_text()) if counted.exists() else 0
    for number in range(count):
        place.reset(with_cache=number % 2 == 0)
        process = _killed(place, outcome, chance, by_time=number % 2 == 0 or not outcome.changes)
        process.communicate()
        _judge(place, outcome, f"kill {number}", before, after)
        if number % repeated_each == 0 and not (writer.is_once and place.state() == after):
            _repeat(place, outcome, f"after kill {number}", after)
    return outcome


def _killed(
    place: Place, outcome: Outcome, chance: random.Random, *, by_time: bool
) -> subprocess.Popen[bytes]:
    if not by_time:
        process = place.start(last_change=chance.randint(1, outcome.changes))
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LONGEST_SECONDS if not outcome.seconds else outcome.seconds * 5 + 20)
    else:
        process = place.start()
        with suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0, outcome.seconds))
    process.kill()
    return process


def _judge(place: Place, outcome: Outcome, when: str, before: State, after: State) -> None:
    now = place.state()
    if now == before:
        outcome.left["before"] += 1
    elif now == after:
        outcome.left["after"] += 1
    else:
        outcome.left["between"] += 1
    wrong = half_written(now, before, after)
    outcome.problems += [f"{when}: {path} is half-written" for path in wrong]
    outcome.drafts += bool(drafts_in(place.work))


def _repeat(place: Place, outcome: Outcome, when: str, after: State) -> None:
    """Run the command again, which must succeed and leave no draft."""
    if problem := place.finish(place.start()):
        outcome.problems.append(f"{when}: {problem}")
        return
    wrong = half_written(place.state(), after, after)
    outcome.problems += [f"{when}, and a run: {path} is wrong" for path in wrong]
    outcome.problems += [f"{when}, and a run: {path} is left" for path in place.drafts()]
