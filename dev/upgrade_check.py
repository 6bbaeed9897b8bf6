"""Checks that ``pip install -U`` over the wheels from before the packages leaves no file of them
behind.

A step of ``make release-check``. It needs the history of the repository, because it builds the old
wheels.
"""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from installed_wheels import UV, CommandError, Environment, add, build_version, install, run
from members import PROJECT
from smallest_uses import USES

#: Commits with a wheel of all code, and with one for callers beside it: by commit, the folder of
#: each wheel.
OLD_WHEELS = {
    "144ffc77": {"constructs-triton": "."},
    "c798fb63": {"constructs-triton": ".", "constructs-triton-client": "client"},
}
#: Sorts after the version of the old wheels, 0.1.0.
VERSION = "99.0"
#: What an installer writes about the installation, and Python about the modules.
NOT_COMPARED = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")


def upgrade_problems(project: Path, folder: Path) -> Iterator[str]:
    """Install the wheels of each old commit, then the new ones over them, and yield what is left or
    missing.

    Args:
        project: The project, with its history.
        folder: A folder for clones, wheels and environments.
    """
    dist = build_version(VERSION, folder, project)
    for commit, folders in OLD_WHEELS.items():
        where = f"pip install -U over {' and '.join(folders)} of {commit}"
        try:
            wheels = list(_old_wheels(project, commit, folders, folder / commit))
            problems = _differences(dist, [*folders], wheels, folder / commit)
            yield from (f"{where}: {problem}" for problem in problems)
        except CommandError as error:
            yield f"{where}: {error}"
        print(f"checked {where}", flush=True)


def _old_wheels(
    project: Path, commit: str, folders: dict[str, str], folder: Path
) -> Iterator[Path]:
    """Build the wheels of a commit.

    Raises:
        CommandError: the clone does not have the commit; ``git fetch --unshallow`` reads it.
    """
    sources = folder / "sources"
    sources.mkdir(parents=True)
    run("git", "archive", "--output", folder / "sources.tar", commit, cwd=project)
    with tarfile.open(folder / "sources.tar") as archive:
        archive.extractall(sources, filter="data")
    for place in folders.values():
        run(
            *UV,
            "build",
            "--wheel",
            "--quiet",
            "--out-dir",
            folder / "wheels",
            sources / place,
            cwd=folder,
        )
    yield from (folder / "wheels").glob("*.whl")


def _differences(dist: Path, names: list[str], wheels: list[Path], folder: Path) -> Iterator[str]:
    """Compare the files of an environment in which the old wheels were before
    with those of a new one.
    """
    fresh = install(sys.executable, folder / "fresh", "pip", *names, dist=dist)
    upgraded = install(sys.executable, folder / "upgraded", "pip")
    add(upgraded, dist, "--no-deps", *map(str, wheels))
    old = _files(upgraded)
    options = (
        "--quiet",
        "--disable-pip-version-check",
        "--find-links",
        dist,
        "-c",
        PROJECT / "constraints.txt",
    )
    upgraded.run("python", "-m", "pip", "install", "-U", *options, *names)
    new, wanted = _files(upgraded), _files(fresh)
    if old <= new:
        yield "the old wheels have no file that the new ones do not have, so this shows nothing"
    yield from (f"left behind: {name}" for name in sorted(new - wanted))
    yield from (f"missing: {name}" for name in sorted(wanted - new))
    for name in ("triton-model-check", names[-1]):
        USES[name](upgraded)


def _files(environment: Environment) -> set[str]:
    """Return the files of an environment's packages and programs,
    without those that name an installer.
    """
    venv = environment.folder / "venv"
    files = (each.relative_to(venv) for each in venv.rglob("*") if each.is_file())
    return {
        each.as_posix()
        for each in files
        if each.suffix != ".pyc"
        and each.name not in NOT_COMPARED
        and not each.name.startswith("activate")
    }
