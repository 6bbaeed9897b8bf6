"""Runs commands on a full disk, in a read-only folder and as another user."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from machine_faults.killing import Place
from machine_faults.states import drafts_in, half_written
from machine_faults.writers import Writer

__all__ = ["FAULTS", "Answer", "answer_in"]

_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
_DISK_KIB = 32_768


@dataclass(frozen=True)
class Answer:
    """What a command printed where it could not write, and what is wrong with that."""

    code: int
    sentence: str
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Fault:
    """A place that cannot be written: how it comes about, and the command before a command."""

    name: str
    begin: Callable[[Path], None]
    before: tuple[str, ...] = ()
    all_folders: bool = False


def _full(free_kib: int) -> Callable[[Path], None]:
    def fill(disk: Path) -> None:
        used = Path(disk, "ballast")
        with used.open("wb") as file:
            try:
                while file.write(bytes(1 << 16)):
                    file.flush()
            except OSError:
                pass
        with used.open("r+b") as file:
            file.truncate(max(0, used.stat().st_size - (free_kib << 10)))

    return fill


def _read_only(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)


def _nothing(_: Path) -> None:
    pass


FAULTS = (
    Fault("full disk", _full(0)),
    Fault("4 KiB free", _full(4)),
    Fault("full disk for all files", _full(0), all_folders=True),
    Fault("read-only disk", _read_only),
    Fault("folder of another user", _nothing, before=_NOBODY),
)


@contextmanager
def _disk(root: Path) -> Iterator[Path]:
    root.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK_KIB}k", "tmpfs", root], check=True)
    try:
        yield root
    finally:
        subprocess.run(["umount", "-l", root], check=False)


def answer_in(fault: Fault, writer: Writer, root: Path, services: Mapping[str, str]) -> Answer:
    """Run a command in a place with a fault, and look at what it says and leaves."""
    with _disk(root / "disk") as disk:
        place = Place(disk / "place", writer, services)
        if not fault.all_folders:
            place.cache, place.temporary = root / "cache", root / "tmp"
        place.reset(with_cache=True)
        if fault.before:
            root.chmod(0o755)
            for folder in (place.cache, place.temporary):
                subprocess.run(["chown", "-R", "65534:65534", folder], check=True)
        before = place.state()
        fault.begin(disk)
        place.before = fault.before
        with place.start() as process:
            printed, _ = process.communicate(timeout=300)
        lines = [line for line in printed.decode(errors="replace").splitlines() if line.strip()]
        code = process.returncode
        problems = [f"{path} is left" for path in drafts_in(place.work)]
        if code not in writer.exit_codes:
            new = {*half_written(place.state(), before, before)} - {*writer.complete_first}
            files = (path for path in sorted(new) if not (place.work / path).is_dir())
            problems += [f"{path} is new" for path in files]
        # An app is a program of the user, which shows where the error was raised.
        if code not in (0, 1, 2) or (b"Traceback" in printed and writer.module != "app"):
            problems.append(f"exit code {code}: {' '.join(lines)[-700:]}")
        errors = [line for line in lines if "error" in line.lower()]
        return Answer(code, (errors or lines or [""])[-1], tuple(problems))
