"""What an engine for language models takes of the GPUs that it chooses itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

RESERVES = "reserves"
"""How the name of a use begins that is a fraction of the GPU."""


class GpuUse(NamedTuple):
    """What engines of a model take of one GPU, in bytes; ``instances`` is how many they are.

    ``certain`` is how much of it are weights without which the model certainly does not load.
    """

    gpu: int
    what: str
    size: int
    instances: int = 1
    certain: int = 0

    @property
    def is_share(self) -> bool:
        """Whether it is a fraction of the GPU."""
        return self.what.startswith(RESERVES)


@dataclass(frozen=True)
class EngineMemory:
    """What all engines of a model take, and what is not known of them."""

    uses: tuple[GpuUse, ...] = ()
    not_counted: tuple[str, ...] = ()

    @classmethod
    def joined(cls, parts: Iterable[EngineMemory]) -> EngineMemory:
        """Return the sum of several, such as those of the versions of a model.

        What several instances take for the same reason is one use.
        """
        uses: dict[tuple[int, str], GpuUse] = {}
        notes: dict[str, None] = {}
        for part in parts:
            for use in part.uses:
                known = uses.get((use.gpu, use.what), GpuUse(use.gpu, use.what, 0, 0))
                uses[use.gpu, use.what] = GpuUse(
                    use.gpu,
                    use.what,
                    known.size + use.size,
                    known.instances + use.instances,
                    known.certain + use.certain,
                )
            notes.update(dict.fromkeys(part.not_counted))
        return cls(tuple(uses.values()), tuple(notes))


def of_instances(use: GpuUse) -> str:
    """Return what engines take, in words, with their number."""
    return use.what if use.instances == 1 else f"{use.what}, {use.instances} instances"


def start_together(engines: Iterable[EngineMemory]) -> list[str]:
    """Return the GPUs that several engines of vLLM share, with what can go wrong at their start.

    Triton loads models in parallel. An engine that starts takes the memory that another one
    allocates meanwhile for its own. Source: vllm issue 55827, for 0.24 to 0.28; server issue 7562.
    """
    sharing: Counter[int] = Counter()
    for engine in engines:
        sharing.update({use.gpu: use.instances for use in engine.uses if use.is_share})
    return [
        f"GPU {gpu}: vLLM engines that start at the same time count each other's memory, and may "
        "not start; load the models one after the other with --model-load-thread-count 1"
        for gpu, count in sorted(sharing.items())
        if count > 1
    ]


def folder_of(place: str, model: str, directory: Path) -> Path | None:
    """Return the folder of a model's directory that a path on the server names.

    A server can have its repository anywhere, so what follows the name of the model counts.
    ``None`` if the path, or a link in it, leads elsewhere.
    """
    parts = place.rstrip("/").split("/")
    if not place.startswith("/") or ".." in parts or model not in parts:
        return None
    below = _after_last(parts, model)
    folder = directory.joinpath(*(part for part in below if part not in ("", ".")))
    try:
        is_inside = folder.is_dir() and folder.resolve().is_relative_to(directory.resolve())
    except (OSError, ValueError):
        return None
    return folder if is_inside else None


def _after_last(parts: Sequence[str], name: str) -> Sequence[str]:
    return parts[len(parts) - parts[::-1].index(name) :]
