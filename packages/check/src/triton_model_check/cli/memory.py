"""``constructs-triton memory``: what models take of GPUs, host and ``/dev/shm``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS, EXIT_WRONG
from constructs_triton_core.untrusted.terminal import print_json, print_note, print_table
from triton_model_check.choosing.settings import Settings
from triton_model_check.cli.target_check import add_target_arguments, target_of
from triton_model_check.memory.estimate import MemoryEstimate, in_units
from triton_model_check.memory.room import Room, models_at_once
from triton_model_check.memory.shared_memory import SHARED_MEMORY
from triton_model_check.model_config.target import Platform, Target
from triton_model_check.model_repository import ModelRepository

_COLUMNS = ("place", "model", "what", ("at least", "right"))


def add_arguments(parser: argparse.ArgumentParser, default: Platform | None = "server") -> None:
    """Declare the command's arguments; ``default`` is where the models run."""
    parser.description = (
        "Print what the models of a repository take of each GPU, of the host and of /dev/shm, at "
        "least, and what is not counted. Name the machine with --instance-type, or with --gpus, "
        "--gpu-memory, --memory and --shm-size. Exit code 1 if it is more than there is."
    )
    parser.add_argument("path", type=Path, metavar="PATH", help="a model repository")
    add_target_arguments(parser, default)
    parser.set_defaults(no_files=False)
    add_common(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    """Print the estimates; return 1 if a place is too small, else 0."""
    repository = ModelRepository.from_directory(arguments.path)
    target = _target(arguments, repository)
    if target.gpu_count is None and target.shm_bytes is None:
        raise InvalidValueError(
            "the number of GPUs is not known; add --instance-type, or --gpus with --gpu-memory "
            "(--gpus 0 for a machine without), or --shm-size for /dev/shm alone"
        )

    estimates = repository.memory(target)
    if arguments.json:
        print_json(_document(estimates, target))
    else:
        _print(estimates, target)

    is_exceeded = any(estimate.exceeded for estimate in estimates)
    return EXIT_WRONG if is_exceeded else EXIT_SUCCESS


def _document(estimates: Sequence[MemoryEstimate], target: Target) -> dict[str, Any]:
    """Return what ``--json`` prints."""
    return {
        "target": target.platform,
        "estimates": [_to_dict(estimate) for estimate in estimates],
        "loaded_at_once": [_room_to_dict(room) for room in _rooms(estimates, target)],
    }


def _target(arguments: argparse.Namespace, repository: ModelRepository) -> Target:
    """Return the target; a folder of several models fits a multi-model endpoint by default."""
    target, is_derived = target_of(arguments, Settings.of(arguments.path))
    names = repository.top_level_models()
    if not is_derived:
        return target
    if len(names) == 1:
        return replace(target, default_model=names[0])
    return replace(target, platform="sagemaker-multi-model")


def _print(estimates: Sequence[MemoryEstimate], target: Target) -> None:
    """Print the parts as a table, then what is not counted, and the room for archives."""
    rows: list[tuple[str, ...]] = []
    not_counted: list[str] = []
    shared_not_counted: list[str] = []
    for estimate in estimates:
        rows += _rows(estimate, target)
        not_counted += estimate.not_counted
        shared_not_counted += estimate.shared_not_counted

    if rows:
        print_table(_COLUMNS, rows)
    _print_list("not counted:", not_counted)
    _print_list(f"not counted in {SHARED_MEMORY}:", shared_not_counted)
    if target.gpu_count is None:
        print_note(f"only {SHARED_MEMORY} is counted; add --gpus N for GPUs and host")
    print_note("memory of requests (activations, workspaces) is not counted either")
    for room in _rooms(estimates, target):
        print_note(str(room))


def _print_list(title: str, lines: Sequence[str]) -> None:
    """Print a title and each different line below it, or nothing if there are no lines."""
    if lines:
        print_note(title, *(f"  {line}" for line in dict.fromkeys(lines)))


def _rooms(estimates: Sequence[MemoryEstimate], target: Target) -> list[Room]:
    """Return the room for the archives of a multi-model endpoint; none for other targets."""
    if target.mode != "multi-model":
        return []
    return models_at_once(estimates, target.model_load_gpu_limit)


def _room_to_dict(room: Room) -> dict[str, Any]:
    """Return a room as ``--json`` prints it."""
    return {
        "place": room.place,
        "limit": room.limit,
        "size": room.size,
        "archives": len(room.archives),
        "fewest": room.fewest,
        "most": room.most,
    }


def _rows(estimate: MemoryEstimate, target: Target) -> list[tuple[str, ...]]:
    """Return the parts of each place with their sum and the limit.

    Of a multi-model endpoint, the sum of one archive says something only if it does not fit.
    """
    rows: list[tuple[str, ...]] = []
    for place in _places(estimate):
        is_summed = target.mode != "multi-model" or place in estimate.exceeded
        for part in estimate.parts:
            if part.place == place and (part.model or is_summed):
                rows.append((place, part.model or "server", part.what, in_units(part.size)))
        if is_summed:
            rows.append(_sum_row(estimate, place))
    return rows


def _places(estimate: MemoryEstimate) -> list[str]:
    """Return the places of which models take memory, and those that are too small, each once."""
    places = [part.place for part in estimate.parts if part.model]
    places += estimate.exceeded
    return list(dict.fromkeys(places))


def _sum_row(estimate: MemoryEstimate, place: str) -> tuple[str, ...]:
    """Return the row with the sum of all parts of a place, and its limit."""
    limit = estimate.limits.get(place)
    what = "of an unknown size" if limit is None else f"of {in_units(limit)}"
    return (place, "sum", what, in_units(estimate.total(place)))


def _to_dict(estimate: MemoryEstimate) -> dict[str, Any]:
    """Return an estimate as ``--json`` prints it."""
    return {
        "models": list(estimate.models),
        "parts": [asdict(part) for part in estimate.parts],
        "limits": dict(estimate.limits),
        "exceeded": list(estimate.exceeded),
        "not_counted": list(estimate.not_counted),
        "shared_not_counted": list(estimate.shared_not_counted),
    }
