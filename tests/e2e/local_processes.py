"""Finds what a local run leaves on the machine: processes, folders, shared memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from constructs_triton_tools.local import LocalEndpoint


def variants(local: LocalEndpoint, endpoint: str | None = None) -> list[dict[str, Any]]:
    """What a run says of its servers, or of those of one endpoint."""
    return [
        variant
        for each in local.description["endpoints"]
        if endpoint in (None, each["name"])
        for variant in each["variants"].values()
    ]


def process_ids(local: LocalEndpoint) -> list[int]:
    """The servers' process ids."""
    return [each["process_id"] for each in variants(local)]


def log_of(local: LocalEndpoint, endpoint: str | None = None) -> Path:
    """The log of the only server of a run, or of an endpoint."""
    (variant,) = variants(local, endpoint)
    return Path(variant["log"])


def folders(local: LocalEndpoint) -> list[Path]:
    """The servers' private folders."""
    return [Path(each["log"]).parent for each in variants(local)]


def loaded_target_models(local: LocalEndpoint, endpoint: str) -> set[str]:
    """The target models that have a stub process, read from the operating system."""
    folder = log_of(local, endpoint).parent
    stubs = [
        words for words in _command_lines() if words[0].startswith(str(folder)) and len(words) > 8
    ]
    return {words[8].rpartition("tar.gz")[0] + "tar.gz" for words in stubs if "tar.gz" in words[8]}


def supervisor_ids(local: LocalEndpoint) -> list[int]:
    """The process ids of the servers' supervisors."""
    names = [str(folder) for folder in folders(local)]
    return [
        process
        for process in processes_with("local.server.supervisor")
        if any(name in _words(Path(f"/proc/{process}")) for name in names)
    ]


def processes_with(*texts: str) -> list[int]:
    """The processes whose command lines contain all of the texts."""
    lines = {int(path.name): " ".join(_words(path)) for path in Path("/proc").glob("[0-9]*")}
    return [process for process, line in lines.items() if all(text in line for text in texts)]


def traces(places: list[Path]) -> list[str]:
    """What is left of runs in these folders: processes, folders, shared-memory regions."""
    names = [place.name for place in places]
    found = [str(place) for place in places if place.exists()]
    found += [line for name in names for line in command_lines_with(name)]
    found += [
        str(region) for region in Path("/dev/shm").iterdir() if any(n in region.name for n in names)
    ]
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
