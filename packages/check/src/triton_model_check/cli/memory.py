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
        rooms = _rooms(estimates, target)
        print_json(
            {
                "target": target.platform,
                "estimates": [_to_dict(each) for each in estimates],
                "loaded_at_once": [_room_to_dict(room) for room in rooms],
            }
        )
    else:
        _print(estimates, target)
    return EXIT_WRONG if any(estimate.exceeded for estimate in estimates) else EXIT_SUCCESS


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
    rows = [row for estimate in estimates for row in _rows(estimate, target)]
    if rows:
        print_table(_COLUMNS, rows)
    not_counted = [line for estimate in estimates for line in estimate.not_counted]
    if not_counted:
        print_note("not counted:", *(f"  {line}" for line in dict.fromkeys(not_counted)))
    shared = [line for estimate in estimates for line in estimate.shared_not_counted]
    if shared:
        lines = (f"  {line}" for line in dict.fromkeys(shared))
        print_note(f"not counted in {SHARED_MEMORY}:", *lines)
    if target.gpu_count is None:
        print_note(f"only {SHARED_MEMORY} is counted; add --gpus N for GPUs and host")
    print_note("memory of requests (activations, workspaces) is not counted either")
    for room in _rooms(estimates, target):
        print_note(str(room))


def _rooms(estimates: Sequence[MemoryEstimate], target: Target) -> list[Room]:
    """Return the room for the archives of a multi-model endpoint; none for other targets."""
    if target.mode != "multi-model":
        return []
    return models_at_once(estimates, target.model_load_gpu_limit)


def _room_to_dict(room: Room) -> dict[str, Any]:
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
    of_models = (part.place for part in estimate.parts if part.model)
    for place in dict.fromkeys((*of_models, *estimate.exceeded)):
        is_summed = target.mode != "multi-model" or place in estimate.exceeded
        for part in estimate.parts:
            if part.place == place and (part.model or is_summed):
                rows.append((place, part.model or "server", part.what, in_units(part.size)))
        if is_summed:
            limit = estimate.limits.get(place)
            what = "of an unknown size" if limit is None else f"of {in_units(limit)}"
            rows.append((place, "sum", what, in_units(estimate.total(place))))
    return rows


def _to_dict(estimate: MemoryEstimate) -> dict[str, Any]:
    return {
        "models": list(estimate.models),
        "parts": [asdict(part) for part in estimate.parts],
        "limits": dict(estimate.limits),
        "exceeded": list(estimate.exceeded),
        "not_counted": list(estimate.not_counted),
        "shared_not_counted": list(estimate.shared_not_counted),
    }
