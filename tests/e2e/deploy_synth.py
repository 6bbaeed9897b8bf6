"""The variants of the deployed stack, and what is in the assembly of one."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

STACK = "Served"
DECLARED = "declared.json"
INSTANCE_TYPE = "ml.g5.xlarge"
MAX_CAPACITY = 4
GPU_TARGET = 55
INVOCATIONS_TARGET = 120
LATENCY_THRESHOLD = 250_000


@dataclass(frozen=True)
class Variant:
    """The differences: each model's constant, the instances,
    and whether the last resource fails.
    """

    models: tuple[tuple[str, int], ...] = (("alpha", 1), ("beta", 2))
    instance_type: str = INSTANCE_TYPE
    max_capacity: int = MAX_CAPACITY
    startup_timeout_seconds: int = 300
    has_broken_dashboard: bool = False
    fleets: tuple[str, ...] = ()
    """Variants of a third endpoint; without any there is no third endpoint."""
    scaled_fleets: tuple[str, ...] = ()


_FIRST = Variant()
VARIANTS = {
    "first": _FIRST,
    "changed_model": replace(_FIRST, models=(("alpha", 11), ("beta", 2))),
    "added_model": replace(_FIRST, models=(*_FIRST.models, ("gamma", 3))),
    "changed_instance_type": replace(_FIRST, instance_type="ml.g5.2xlarge"),
    "changed_timeout": replace(_FIRST, startup_timeout_seconds=900, max_capacity=7),
    "two_fleets": replace(_FIRST, fleets=("blue", "green"), scaled_fleets=("blue", "green")),
    "one_unscaled": replace(_FIRST, fleets=("blue", "green"), scaled_fleets=("blue",)),
    "one_fleet": replace(_FIRST, fleets=("blue",), scaled_fleets=("blue",)),
    "broken": replace(
        _FIRST, models=(("alpha", 12), ("beta", 2)), max_capacity=9, has_broken_dashboard=True
    ),
}


@dataclass(frozen=True)
class Declared:
    """A synthesized variant: its folder and its models."""

    directory: Path

    def target_model(self, model: str) -> str:
        """The TargetModel of a request, which is the archive's name below the prefix."""
        return self._models[model]["target_model"]

    def archive(self, model: str) -> bytes:
        """The content of the model's archive in the assembly."""
        key = self._models[model]["object_key"]
        assets = json.loads((self.directory / f"{STACK}.assets.json").read_text())["files"].values()
        (path,) = {
            each["source"]["path"]
            for each in assets
            if key in [destination["objectKey"] for destination in each["destinations"].values()]
        }
        content: bytes = (self.directory / path).read_bytes()
        return content

    @property
    def _models(self) -> dict[str, dict[str, str]]:
        models: dict[str, dict[str, str]] = json.loads((self.directory / DECLARED).read_text())
        return models
