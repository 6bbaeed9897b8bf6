"""A model that keeps sequences, on more instances or copies than one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match
from cdk_apps import add_endpoint, add_many, add_repository, write_model

from constructs_triton import (
    InstanceType,
    TritonComponentEndpoint,
    TritonEndpoint,
    TritonInferenceComponent,
    TritonVariant,
)

CPU = InstanceType.of("ml.c5.4xlarge")
CONFIG = """name: "sums" backend: "python" max_batch_size: 1
input { name: "x" data_type: TYPE_FP32 dims: 1 }
output { name: "y" data_type: TYPE_FP32 dims: 1 }
sequence_batching { %s }
instance_group { kind: KIND_CPU }
"""
CODE = "sequence-on-several-instances"
Add = Callable[..., TritonEndpoint]


def models(tmp_path: Path, options: str = "") -> Path:
    write_model(tmp_path, "sums", config=CONFIG % options)
    return tmp_path


@pytest.fixture
def add(stack: cdk.Stack, tmp_path: Path) -> Add:
    """Adds an endpoint of the model."""

    def endpoint(*, options: str = "", **props: Any) -> TritonEndpoint:
        return add_endpoint(
            stack, models(tmp_path, options), model=None, instance_type=CPU, **props
        )

    return endpoint


def found(stack: cdk.Stack) -> list[str]:
    entries = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp(CODE))
    return [str(each.entry.data) for each in entries]


def test_several_instances_are_reported(add: Add, stack: cdk.Stack) -> None:
    """The warning names the property, the model, the number and what keeps a sequence together."""
    add(initial_instance_count=3)
    (text,) = found(stack)
    assert text.startswith(
        'initial_instance_count: model "sums" keeps the state of a sequence, but SageMaker'
    )
    assert "any of up to 3 instances" in text
    assert "TargetVariant" in text


def test_scaling_is_reported(add: Add, stack: cdk.Stack) -> None:
    """An endpoint that begins with one instance and may get more is reported, too."""
    add().auto_scale_instance_count(min_capacity=1, max_capacity=4)
    (text,) = found(stack)
    assert text.startswith("max_capacity: ")


@pytest.mark.parametrize(
    "props",
    [
        {},
        {"options": "iterative_sequence: true", "initial_instance_count": 3},
        {"variants": [TritonVariant(variant_name="A"), TritonVariant(variant_name="B")]},
    ],
)
def test_sequences_that_stay_together_are_not_reported(
    add: Add, stack: cdk.Stack, props: dict[str, Any]
) -> None:
    """One instance, variants of one instance each,
    and requests that Triton itself repeats are correct.
    """
    add(**props)
    assert found(stack) == []


def test_multi_model_endpoints_are_reported(stack: cdk.Stack, tmp_path: Path) -> None:
    """On a multi-model endpoint any of its models may keep sequences."""
    write_model(tmp_path, "other")
    add_many(stack, models(tmp_path), instance_type=CPU, initial_instance_count=2)
    (text,) = found(stack)
    assert '"sums"' in text
    assert '"other"' not in text


def test_copies_of_a_component_are_reported(stack: cdk.Stack, tmp_path: Path) -> None:
    """A component whose copies may become several is reported at its endpoint."""
    endpoint = TritonComponentEndpoint(
        stack, "Shared", instance_type=CPU, min_instance_count=1, max_instance_count=2
    )
    component = TritonInferenceComponent(
        stack,
        "Sums",
        endpoint=endpoint,
        model_repository=add_repository(stack, models(tmp_path)),
        min_memory=cdk.Size.gibibytes(2),
    )
    component.auto_scale_copy_count(min_capacity=1, max_capacity=3)
    (text,) = found(stack)
    assert text.startswith("component Sums: ")
    assert "3 copies" in text
