"""Resolves and downloads packages with uv, which needs no interpreter of the target's version."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError, MissingDependencyError
from constructs_triton_core.processes.children import own_environment, run_child
from constructs_triton_core.untrusted.drafts import temporary_folder
from constructs_triton_tools.building.environments.uv_settings import refuse_builds
from triton_model_check.artifacts.environments.lock import EnvironmentLock
from triton_model_check.artifacts.environments.requirements import Requirements
from triton_model_check.artifacts.environments.target import EnvironmentTarget

OLDEST_UV = (0, 13)
"""Before it, uv builds editable packages in spite of that option, which runs their code. Before
0.11.9, it writes paths outside of a package from its RECORD. The extra ``env`` requires the same
version."""

_INDEX_LINE = re.compile(
    r"(?:-i|--index-url|--extra-index-url|-f|--find-links|--no-index)(?:[\s=]|$)"
)
_NUMPY = re.compile(r"numpy(?![A-Za-z0-9._-])", re.IGNORECASE)
_UNREACHABLE = (
    "error sending request",
    "Failed to fetch",
    "may only be read from the cache",
    "dns error",
)
_VERSION_SECONDS = 60
_OFFLINE_HINT = (
    "connect to the network, or set --index or --find-links to packages that can be reached"
)


@dataclass(frozen=True, slots=True)
class _Uv:
    """How uv is called: in the folder of the requirements,
    so that it finds the settings of the project.
    """

    folder: Path
    target: EnvironmentTarget
    place: str

    def run(self, *arguments: str) -> str:
        refuse_builds(self.folder)
        command = [_checked(_find_uv()), "--no-progress", "--quiet", *arguments]
        # Without this, uv may download an interpreter.
        environment = own_environment(UV_PYTHON_DOWNLOADS="never", NO_COLOR="1")
        done = run_child(command, seconds=None, cwd=self.folder, environment=environment)
        if done.returncode:
            raise InvalidValueError(_explain(done.stderr.strip(), self.target, self.place))
        return done.stdout

    @property
    def options(self) -> list[str]:
        target = self.target
        words = ["--python", sys.executable]
        words += ["--python-version", target.python]
        words += ["--python-platform", target.platform]
        words += ["--only-binary", ":all:"]
        return words


@cache
def _checked(path: str) -> str:
    """Return the path of uv, if it is new enough to keep to its options."""
    done = run_child([path, "--version"], seconds=_VERSION_SECONDS)
    version = re.match(r"uv (\d+)\.(\d+)", done.stdout)
    if version is None or (int(version[1]), int(version[2])) < OLDEST_UV:
        got = done.stdout.strip() or f"exit code {done.returncode}"
        raise MissingDependencyError(
            f"{path}: must be uv {OLDEST_UV[0]}.{OLDEST_UV[1]} or newer, which runs no code of "
            f"packages and ignores paths outside of them, got {got}; run `pip install --upgrade "
            "'constructs-triton[env]'`"
        )
    return path


def _find_uv() -> str:
    try:
        from uv import find_uv_bin

        return str(find_uv_bin())
    except (ImportError, FileNotFoundError) as error:
        raise MissingDependencyError(
            "uv: is not installed, and builds Python environments; run `pip install "
            "'constructs-triton[env]'`"
        ) from error


def export_uv_lock(requirements: Requirements, target: EnvironmentTarget) -> tuple[str, ...]:
    """Return the requirements in uv's own lock file, without the project itself."""
    extras: list[str] = []
    for name in requirements.extras:
        extras += ["--extra", name]
    options = [
        "--frozen",
        "--no-emit-project",
        "--no-hashes",
        "--no-header",
        "--no-annotate",
        "--no-dev",
    ]
    output = _Uv(requirements.folder, target, str(requirements.path)).run(
        "export", "--python", sys.executable, *options, "--format", "requirements.txt", *extras
    )
    return tuple(line.strip() for line in output.splitlines() if line.strip())


def resolve(
    lines: Sequence[str],
    constraints: Sequence[str],
    target: EnvironmentTarget,
    *,
    options: Sequence[str],
    folder: Path,
    place: str,
    preferred: str = "",
) -> str:
    """Choose a version of every package, and return them with hashes.

    ``constraints`` are requirements that limit versions. ``preferred`` is an earlier result, whose
    versions are kept where they still fit. ``folder`` is where relative paths start, and ``place``
    the file of the requirements in messages.
    """
    with temporary_folder() as scratch:
        given, limits, result = (
            Path(scratch, name) for name in ("requirements.in", "constraints.txt", "lock")
        )
        packages = [line for line in lines if not _INDEX_LINE.match(line)]
        given.write_text("\n".join([*packages, ""]), encoding="utf-8")
        limits.write_text(
            "\n".join([*constraints, *_numpy_limit(lines, target), ""]), encoding="utf-8"
        )
        result.write_text(preferred, encoding="utf-8")
        uv = _Uv(folder, target, place)
        uv.run(
            *("pip", "compile", "--generate-hashes", "--no-header", "--no-annotate"),
            *(
                "--constraints",
                str(limits),
                *uv.options,
                *_index_options(lines),
                *options,
                "--output-file",
                str(result),
                str(given),
            ),
        )
        return result.read_text(encoding="utf-8")


def _numpy_limit(lines: Sequence[str], target: EnvironmentTarget) -> list[str]:
    """Images are tested with their own NumPy, so another one is used only if it is asked for."""
    is_chosen = any(_NUMPY.match(line) for line in lines)
    is_limited = target.must_keep_numpy or not is_chosen
    return [target.numpy_constraint] if is_limited and target.numpy_constraint else []


def _index_options(lines: Sequence[str]) -> list[str]:
    """Return the options about indexes in requirements, with the values of environment variables.

    On the command line their paths start at the folder of the requirements. In a file they would
    start at the folder of the file, which is a temporary one.
    """
    words: list[str] = []
    for line in lines:
        if _INDEX_LINE.match(line):
            words += re.split(r"[\s=]", line, maxsplit=1)
    return [os.path.expandvars(word) for word in words]


def install(
    lock: EnvironmentLock, site: Path, target: EnvironmentTarget, folder: Path, place: str
) -> None:
    """Download the packages of a lock file, check their hashes, and unpack them into ``site``.

    No code of a package runs.
    """
    options = [*_index_options(lock.requirements), *lock.options]
    with temporary_folder() as scratch:
        pins = Path(scratch, "pins.txt")
        pins.write_text(lock.pins, encoding="utf-8")
        uv = _Uv(folder, target, place)
        uv.run(
            *(
                "pip",
                "install",
                "--target",
                str(site),
                *uv.options,
                "--no-deps",
                "--require-hashes",
            ),
            *(
                "--link-mode",
                "copy",
                "--no-compile-bytecode",
                *options,
                "--requirements",
                str(pins),
            ),
        )


def _explain(output: str, target: EnvironmentTarget, place: str) -> str:
    """Return a message with uv's own reason and what to do about it."""
    reason = " ".join(output.removeprefix("error: ").split())
    start = f"{place}: uv found no packages for {target.description}"
    if "building from source is disabled" in output or "no usable wheels" in output:
        return (
            f"{start} ({reason}); a package exists only as source: build a wheel of it with `uv "
            "build --wheel`, or `pip wheel --no-deps`, for this Python and platform, and pass its "
            "folder with --find-links"
        )
    if any(phrase in output for phrase in _UNREACHABLE):
        return f"{start} ({reason}); {_OFFLINE_HINT}"
    if "ash mismatch" in output:
        return (
            f"{start} ({reason}); the index has another file than the one that was locked: check "
            "where it comes from, and run `constructs-triton "
            "env build` with --update if you trust it"
        )
    if "numpy<2" in output.replace(" ", ""):
        hint = 'the image has NumPy 1: add "numpy>=2" to the requirements to use another one'
        if target.must_keep_numpy:
            hint = "its server cannot use NumPy 2: use older versions of these packages"
        return f"{start} ({reason}); {hint}"
    return f"{start} ({reason}); change the requirements, or set --index or --find-links"
