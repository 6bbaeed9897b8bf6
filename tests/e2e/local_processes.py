"""Finds what a local run leaves on the machine: processes, folders, shared memory."""

from __future__ import annotations

from pathlib import Path

from constructs_triton_tools.local import LocalEndpoint


def process_ids(local: LocalEndpoint) -> list[int]:
    """The servers' process ids."""
    return [
        variant["process_id"]
        for endpoint in local.description["endpoints"]
        for variant in endpoint["variants"].values()
    ]


def folders(local: LocalEndpoint) -> list[Path]:
    """The servers' private folders."""
    return [
        Path(variant["log"]).parent
        for endpoint in local.description["endpoints"]
        for variant in endpoint["variants"].values()
    ]


def loaded_target_models(local: LocalEndpoint, endpoint: str) -> set[str]:
    """The target models that have a stub process, read from the operating system."""
    (folder,) = [
        Path(variant["log"]).parent
        for each in local.description["endpoints"]
        if each["name"] == endpoint
        for variant in each["variants"].values()
    ]
    stubs = [words for words in _command_lines() if words[0].startswith(str(folder)) and len(words) > 8]
    return {words[8].rpartition("tar.gz")[0] + "tar.gz" for words in stubs if "tar.gz" in words[8]}


def supervisor_ids(local: LocalEndpoint) -> list[int]:
    """The process ids of the servers' supervisors."""
    names = [str(folder) for folder in folders(local)]
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        words = _words(process)
        if any("local.server.supervisor" in word for word in words) and any(name in words for name in names):
            found.append(int(process.name))
    return found


def traces(places: list[Path]) -> list[str]:
    """What is left of runs in these folders: processes, folders, shared-memory regions."""
    names = [place.name for place in places]
    found = [str(place) for place in places if place.exists()]
    found += [line for name in names for line in command_lines_with(name)]
    found += [str(region) for region in Path("/dev/shm").iterdir() if any(n in region.name for n in names)]
    return found


def command_lines_with(text: str) -> list[str]:
    """The command lines of the processes that run now and name ``text``."""
    lines = (" ".join(words) for words in _command_lines())
    return [line for line in lines if text in line]


def _command_lines() -> list[list[str]]:
    lines = (_words(process) for process in Path("/proc").glob("[0-9]*"))
    return [words for words in lines if words and words[0]]


def _words(process: Path) -> list[str]:
    try:
        return (process / "cmdline").read_bytes().decode().split("\0")
    except OSError:
        return []
