"""Instance groups: how many copies of a model run, and on which device.

Source: triton core, NormalizeInstanceGroup and ValidateInstanceGroup. Rules that depend on the
machine use the target's number of GPUs, and are skipped if it is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.fixes.steps import put, remove, safe, unsafe
from triton_model_check.memory.instances import AUTO, CPU, GPU, MODEL, resolved_kind

_SOURCE = "triton core ValidateInstanceGroup"
_INDEX = re.compile(r"\s*\+?\d")  # Triton reads the number at the start and ignores the rest
_rule = partial(rule, when=("instance_group",))
_warning = partial(warning, when=("instance_group",))


def groups(model: ModelUnderCheck) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield the instance groups with their places; an ensemble has none."""
    if not model.config.HasField("ensemble_scheduling"):
        for index, group in enumerate(model.config.instance_group):
            yield ("instance_group", index), group


def instance_count(model: ModelUnderCheck) -> int:
    """Return how many instances of the model one machine runs;
    a GPU group counts once for each GPU.
    """
    total = 0
    for _, group in groups(model):
        on_gpu = resolved_kind(group, model.target.gpu_count) == GPU
        total += max(1, group.count) * (
            max(1, len(group.gpus) or model.target.gpu_count or 1) if on_gpu else 1
        )
    return total or 1


@_rule("instance-gpus-without-gpu", source=_SOURCE, hint="remove gpus, or write kind: KIND_GPU")
def gpus_without_gpu(model: ModelUnderCheck) -> Iterator[Problem]:
    """Only instances of KIND_GPU list ``gpus``.

    Without ``kind``, a group that lists a GPU that the machine does not have becomes KIND_CPU.
    Triton then rejects its list.
    """
    for place, group in groups(model):
        kind = resolved_kind(group, model.target.gpu_count)
        if not group.gpus or kind not in (CPU, MODEL):
            continue
        if group.kind == AUTO:
            message = f"specifies GPUs that the instance does not have, got {list(group.gpus)}"
            field, hint = (*place, "gpus"), "remove gpus"
            yield Problem(f"instance group {message}", field, hint, fix=unsafe(remove()))
        else:
            name = "KIND_CPU" if kind == CPU else "KIND_MODEL"
            message = (
                f"instance group has kind {name} but specifies one or more GPUs, "
                f"got {list(group.gpus)}"
            )
            yield Problem(message, (*place, "gpus"), fix=unsafe(remove()))


@_rule("instance-no-gpu", source=_SOURCE)
def no_gpu(model: ModelUnderCheck) -> Iterator[Problem]:
    """KIND_GPU needs a GPU, and lists only GPUs that the instance has.

    GPUs count from 0.
    """
    count = model.target.gpu_count
    if count is None:
        return
    for place, group in groups(model):
        if group.kind != GPU:
            continue
        if count == 0:
            hint = (
                f"write kind: KIND_CPU, remove kind, or choose {model.target.hardware} with a GPU"
            )
            message = "instance group has kind KIND_GPU but no GPUs are available"
            listed = [remove(path=(*place, "gpus"))] if group.gpus else []
            yield Problem(message, (*place, "kind"), hint, fix=unsafe(put("KIND_CPU"), *listed))
            continue
        absent = [gpu for gpu in group.gpus if gpu not in range(count)]
        if absent:
            hint = f"write GPUs from 0 to {count - 1}" if count > 1 else "write gpus: [ 0 ]"
            message = f"instance group specifies invalid or unsupported gpu id, got {absent}"
            positions = [index for index, gpu in enumerate(group.gpus) if gpu not in range(count)]
            is_all = len(positions) == len(group.gpus)
            fix = unsafe(remove()) if is_all else unsafe(*map(remove, positions))
            yield Problem(message, (*place, "gpus"), hint, fix=fix)


@_rule("instance-kind", source=_SOURCE, hint="write KIND_AUTO, KIND_GPU, KIND_CPU or KIND_MODEL")
def kind_unknown(model: ModelUnderCheck) -> Iterator[Problem]:
    """``kind`` is a value of the schema.

    The text format accepts numbers for enum values, and any number parses.
    """
    for place, group in groups(model):
        if group.kind not in range(4):
            yield Problem(f"instance group has unexpected kind, got {group.kind}", (*place, "kind"))


@_rule("instance-profile", source=_SOURCE)
def profile(model: ModelUnderCheck) -> Iterator[Problem]:
    """Only TensorRT models have ``profile``, which contains indices from 0.

    Optimization profiles are part of a TensorRT plan.
    """
    is_tensorrt = model.may_be_tensorrt
    for place, group in groups(model):
        if group.profile and not is_tensorrt:
            message = (
                "instance group specifies profile field which is only supported for TensorRT models"
            )
            yield Problem(message, (*place, "profile"), "remove profile", fix=safe(remove()))
        elif any(not _INDEX.match(index) for index in group.profile):
            message = f"instance group specifies invalid profile, got {list(group.profile)}"
            yield Problem(
                message, (*place, "profile"), 'write an index as a string: profile: [ "0" ]'
            )


@_warning(
    "instance-count",
    source="triton core NormalizeInstanceGroup",
    hint="write a count of at least 1",
)
def count(model: ModelUnderCheck) -> Iterator[Problem]:
    """``count`` is not negative.

    Triton replaces a count below 1 by its default, and logs nothing.
    """
    for place, group in groups(model):
        if group.count < 0:
            message = f"count must not be negative; Triton uses its default, got {group.count}"
            yield Problem(message, (*place, "count"), fix=safe(remove()))


@_warning(
    "instance-gpu-twice",
    source="triton core TritonModelInstance::SetInstances",
    hint="list each GPU once, and set count for several instances on one GPU",
)
def gpu_twice(model: ModelUnderCheck) -> Iterator[Problem]:
    """A group lists each GPU once.

    A GPU that is listed twice runs twice as many instances, which use twice the memory.
    """
    for place, group in groups(model):
        if len(set(group.gpus)) < len(group.gpus):
            gpus = list(group.gpus)
            kept = {gpu: index for index, gpu in reversed([*enumerate(gpus)])}
            fix = unsafe(*(remove(index) for index, gpu in enumerate(gpus) if kept[gpu] != index))
            yield Problem(
                f"instance group lists a GPU twice, got {gpus}", (*place, "gpus"), fix=fix
            )
