"""Instance groups: how many copies of a model run, and where.

Source: triton core, NormalizeInstanceGroup and ValidateInstanceGroup. What depends on the machine is judged
by the target's number of GPUs, and not at all where that is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from constructs_triton.findings import Severity
from constructs_triton.model_config.model_under_check import ModelUnderCheck
from constructs_triton.model_config.rules import Problem, rule

__all__: list[str] = []

_SOURCE = "triton core ValidateInstanceGroup"
_INDEX = re.compile(r"\s*\+?\d")  # the server reads the number at the start and minds no rest
_AUTO, _GPU, _CPU, _MODEL = range(4)


def groups(model: ModelUnderCheck) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The instance groups with their places; an ensemble has none to judge."""
    if not model.config.HasField("ensemble_scheduling"):
        for index, group in enumerate(model.config.instance_group):
            yield ("instance_group", index), group


def resolved_kind(group: Any, gpu_count: int | None) -> int:
    """The kind that the server settles on; ``KIND_AUTO`` stays where the number of GPUs is unknown."""
    if group.kind != _AUTO or gpu_count is None:
        return int(group.kind)
    absent = gpu_count == 0 or any(gpu not in range(gpu_count) for gpu in group.gpus)
    return _CPU if absent else _GPU


@rule(
    "instance-gpus-without-gpu",
    when=("instance_group",),
    source=_SOURCE,
    hint="remove gpus, or write KIND_GPU",
)
def gpus_without_gpu(model: ModelUnderCheck) -> Iterator[Problem]:
    """Only instances on GPUs list ``gpus``.

    Without a kind, a group that lists an absent GPU becomes KIND_CPU and is then refused for its list.
    """
    for place, group in groups(model):
        kind = resolved_kind(group, model.target.gpu_count)
        if not group.gpus or kind not in (_CPU, _MODEL):
            continue
        if group.kind == _AUTO:
            hint = f"remove gpus: the instance has {model.target.gpu_count} GPUs"
            yield Problem(f"gpus that are not there, got {list(group.gpus)}", (*place, "gpus"), hint)
        else:
            name = "KIND_CPU" if kind == _CPU else "KIND_MODEL"
            yield Problem(f"{name} lists gpus, got {list(group.gpus)}", (*place, "gpus"))


@rule("instance-no-gpu", when=("instance_group",), source=_SOURCE)
def no_gpu(model: ModelUnderCheck) -> Iterator[Problem]:
    """KIND_GPU needs a GPU on the instance, and lists only GPUs that it has.

    GPUs count from 0.
    """
    count = model.target.gpu_count
    if count is None:
        return
    for place, group in groups(model):
        if group.kind != _GPU:
            continue
        if count == 0:
            hint = "write KIND_CPU, leave kind out, or choose a GPU instance"
            yield Problem("KIND_GPU on an instance without a GPU", (*place, "kind"), hint)
            continue
        absent = [gpu for gpu in group.gpus if gpu not in range(count)]
        if absent:
            hint = f"the instance has GPU 0 to {count - 1}" if count > 1 else "the instance has GPU 0 alone"
            yield Problem(f"no such GPU, got {absent}", (*place, "gpus"), hint)


@rule(
    "instance-kind",
    when=("instance_group",),
    source=_SOURCE,
    hint="write KIND_AUTO, KIND_GPU, KIND_CPU or KIND_MODEL",
)
def kind_unknown(model: ModelUnderCheck) -> Iterator[Problem]:
    """The kind is one that the schema knows.

    Numbers stand for enum values in the text format, and any number parses.
    """
    for place, group in groups(model):
        if group.kind not in range(4):
            yield Problem(f"no such kind, got {group.kind}", (*place, "kind"))


@rule("instance-profile", when=("instance_group",), source=_SOURCE)
def profile(model: ModelUnderCheck) -> Iterator[Problem]:
    """``profile`` is TensorRT's alone, and holds indices from 0.

    Optimization profiles are part of a TensorRT plan.
    """
    is_tensorrt = model.may_be_tensorrt
    for place, group in groups(model):
        if group.profile and not is_tensorrt:
            yield Problem("profile needs TensorRT", (*place, "profile"), "remove profile")
        elif any(not _INDEX.match(index) for index in group.profile):
            yield Problem(
                f"profile holds indices, got {list(group.profile)}", (*place, "profile"), 'write ["0"]'
            )


@rule(
    "instance-count",
    when=("instance_group",),
    severity=Severity.WARNING,
    source="triton core NormalizeInstanceGroup",
    hint="write the number that you mean",
)
def count(model: ModelUnderCheck) -> Iterator[Problem]:
    """``count`` is not negative.

    The server reads anything below 1 as its default without a word.
    """
    for place, group in groups(model):
        if group.count < 0:
            yield Problem(f"count is taken as the default, got {group.count}", (*place, "count"))


@rule(
    "instance-gpu-twice",
    when=("instance_group",),
    severity=Severity.WARNING,
    source="triton core TritonModelInstance::SetInstances",
    hint="use count for several instances on one GPU",
)
def gpu_twice(model: ModelUnderCheck) -> Iterator[Problem]:
    """A group lists each GPU once.

    A GPU listed twice gets twice the instances, and twice the memory is used.
    """
    for place, group in groups(model):
        if len(set(group.gpus)) < len(group.gpus):
            yield Problem(f"a GPU is listed twice, got {list(group.gpus)}", (*place, "gpus"))
