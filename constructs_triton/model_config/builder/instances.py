"""How many instances of a model run, on which devices, and how they share them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from constructs_triton.model_config.builder.typed_message import TypedMessage

__all__ = ["ModelInstanceGroup", "ModelRateLimiter"]


class ModelRateLimiter(TypedMessage):
    """Resources that an instance needs while it runs, for servers with a rate limiter."""

    class Resource(TypedMessage):
        """A resource by its name; ``global_`` ones are shared by all devices (``global`` in the file)."""

        name: str = ""
        global_: bool = False
        count: int = 0

    resources: Sequence[Resource] = ()
    priority: int = 0


class ModelInstanceGroup(TypedMessage):
    """``count`` instances of the model on each GPU of ``gpus`` (default: all), or on the CPU."""

    class SecondaryDevice(TypedMessage):
        """Another device that an instance uses."""

        kind: Literal["KIND_NVDLA"] = "KIND_NVDLA"
        device_id: int = 0

    name: str = ""
    kind: Literal["KIND_AUTO", "KIND_GPU", "KIND_CPU", "KIND_MODEL"] = "KIND_AUTO"
    count: int = 0
    rate_limiter: ModelRateLimiter | None = None
    gpus: Sequence[int] = ()
    secondary_devices: Sequence[SecondaryDevice] = ()
    profile: Sequence[str] = ()
    passive: bool = False
    host_policy: str = ""
