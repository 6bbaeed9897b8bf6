"""How many instances of a model run, on which devices, and how they share them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from triton_model_check.builder.typed_message import TypedMessage


class ModelRateLimiter(TypedMessage):
    """Resources that an instance needs while it runs, for servers with a rate limiter.

    Args:
        resources: The resources; an instance runs when all are free.
        priority: Weight among instances: one with priority 2 gets half the chances of one with 1. 0
            means 1.
    """

    class Resource(TypedMessage):
        """A resource of the rate limiter.

        Args:
            name: Name of the resource.
            global_: Whether all devices share one supply; otherwise each device has its own. In the
                file it is ``global``.
            count: How much of it an instance needs.
        """

        name: str = ""
        global_: bool = False
        count: int = 0

    resources: Sequence[Resource] = ()
    priority: int = 0


class ModelInstanceGroup(TypedMessage):
    """Instances of the model with the same settings.

    Args:
        name: Name of the group. Empty: the model's name and the number of the group.
        kind: Where instances run. ``"KIND_AUTO"`` is the GPU if there is one, else the CPU; with
            ``"KIND_MODEL"`` the backend decides.
        count: Number of instances, on each GPU of ``gpus`` or on the CPU. 0 means 1.
        rate_limiter: Resources that an instance needs to run. Default: none.
        gpus: Numbers of the GPUs, from 0. Empty: all. Not with ``"KIND_CPU"`` and ``"KIND_MODEL"``.
        secondary_devices: Further devices that an instance uses.
        profile: Numbers of TensorRT's optimization profiles. Empty: the first one. Only for
            TensorRT.
        passive: Whether instances are loaded without receiving requests.
        host_policy: Name of the server's host policy. Empty: that of the device, such as ``"cpu"``
            or ``"gpu_0"``.
    """

    class SecondaryDevice(TypedMessage):
        """Another device that an instance uses.

        Args:
            kind: Type of the device; TensorRT supports NVIDIA's deep learning accelerator.
            device_id: Number of the device.
        """

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
