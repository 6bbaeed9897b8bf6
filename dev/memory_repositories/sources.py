"""Takes the files of a system from its repository, at one commit, into a folder."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

_PROJECT = Path(__file__).resolve().parents[2]
_LARGEST = 4 * 2**20
"""Larger files are stood in for: their content says nothing about memory."""


def take_files(system: Mapping[str, str], copies: Path | None, repository: Path) -> list[str]:
    """Write the files of a system below ``repository``, and return those that are left out.

    ``copies`` has git directories ``OWNER+NAME`` that were fetched before; without it, the commit
    is fetched from GitHub. If ``path`` is the folder of one model or its configuration, ``model``
    has the model's name.
    """
    path = system["path"]
    if "repository" not in system:
        tree = _PROJECT
    else:
        tree = _git_directory(system, copies, repository.parent / "git")
    commit = system.get("commit", "HEAD")

    left_out, kept = _split(tree, commit, path)
    folder = repository / system["model"] if "model" in system else repository
    folder.mkdir(parents=True, exist_ok=True)
    if kept:
        packed = _git(tree, "--literal-pathspecs", "archive", "--format=tar", commit, "--", *kept)
        _unpack(packed, path, folder)
    return left_out


def _git_directory(system: Mapping[str, str], copies: Path | None, folder: Path) -> Path:
    name = system["repository"]
    if copies is not None:
        found = sorted((copies / name.replace("/", "+")).glob("**/HEAD"))
        heads = [head.parent for head in found if (head.parent / "objects").is_dir()]
        if heads:
            return heads[0]
    folder.mkdir(parents=True, exist_ok=True)
    _git(folder, "init", "--quiet", "--bare")
    url = f"https://github.com/{name}"
    _git(folder, "fetch", "--quiet", "--depth=1", url, system["commit"])
    return folder


def _split(tree: Path, commit: str, path: str) -> tuple[list[str], list[str]]:
    """Return the files that are too large or absent from a partial copy, and the others."""
    listing = _git(
        tree, "--literal-pathspecs", "ls-tree", "-r", "-l", "-z", commit, "--", path
    ).decode()
    left_out: list[str] = []
    kept: list[str] = []
    for line in filter(None, listing.split("\0")):
        about, _, name = line.partition("\t")
        size = about.split()[-1]
        is_small = size.isdigit() and int(size) < _LARGEST
        (kept if is_small else left_out).append(name)
    if not kept and not left_out:
        raise FileNotFoundError(f"{tree}: {commit} has no {path}")
    return left_out, kept


def _unpack(packed: bytes, path: str, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member) if member.isfile() else None
            if file is None:
                continue
            # A path that is a file leaves no name: it is the configuration of a model.
            name = member.name.removeprefix(path).lstrip("/") or "config.pbtxt"
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read())


def _git(tree: Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(tree), *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout
