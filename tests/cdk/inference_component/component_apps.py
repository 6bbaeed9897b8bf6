"""The component endpoints and components of the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk.assertions import Annotations, Match
from cdk_apps import add_repository, write_repository

from constructs_triton import (
    InstanceType,
    TritonComponentEndpoint,
    TritonInferenceComponent,
    TritonModelRepository,
)

G5 = InstanceType.of("ml.g5.12xlarge")
"""4 GPUs, 48 vCPUs, 192 GiB."""
CPU = InstanceType.of("ml.c5.4xlarge")
"""No GPU, 16 vCPUs, 32 GiB."""


def add_endpoint(scope: cdk.Stack, id: str = "Shared", **options: Any) -> TritonComponentEndpoint:
    """Add an endpoint of up to two ``ml.g5.12xlarge``, unless ``options`` say otherwise."""
    given = {"instance_type": G5, "min_instance_count": 1, "max_instance_count": 2, **options}
    return TritonComponentEndpoint(scope, id, **given)


def add_component(
    endpoint: Any,
    path: Path,
    id: str = "Pipeline",
    *,
    scope: cdk.Stack | None = None,
    **options: Any,
) -> TritonInferenceComponent:
    """Add the ensemble ``pipeline`` with 1 GPU and 2 GiB for each copy,
    unless ``options`` say otherwise.
    """
    stack = cdk.Stack.of(endpoint) if scope is None else scope
    if not (path / "pipeline").exists():
        write_repository(path)
    found = stack.node.try_find_child("Models")
    given = {
        "min_memory": cdk.Size.gibibytes(2),
        "number_of_accelerator_devices": 1 if endpoint.instance_type.has_gpu else None,
        **({} if "model" in options else {"ensemble": "pipeline"}),
        **options,
    }
    if "model_repository" not in given:
        is_there = isinstance(found, TritonModelRepository)
        given["model_repository"] = found if is_there else add_repository(stack, path)
    return TritonInferenceComponent(stack, id, endpoint=endpoint, **given)


def warnings_of(stack: cdk.Stack) -> dict[str, str]:
    """The warnings of an app by their ids, after synthesis."""

    found = Annotations.from_stack(stack).find_warning("*", Match.any_value())
    texts = [str(each.entry.data) for each in found]
    return {text.rpartition("[ack: ")[2].rstrip("]"): text for text in texts}
