"""Typed messages: which values they accept, reject and keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from constructs_triton_core.errors import InvalidValueError
from triton_model_check import model_config
from triton_model_check.model_config import (
    ModelDynamicBatching,
    ModelInput,
    ModelOptimizationPolicy,
    ModelQueuePolicy,
    ModelRateLimiter,
    ModelSequenceBatching,
    ModelTensorReshape,
    ModelWarmup,
)
from triton_model_check.model_config.schema import message_class

# Values whose types are wrong on purpose, out of a type checker's sight.
wrong: Any = model_config


TWO_OF_ONE = r"ModelWarmup.Input: .* got zero_data and random_data; remove all but one"
BOTH_POLICIES = "ModelVersionPolicy: only one field of policy_choice can be set, got latest and all"
ALL, NEWEST = wrong.ModelVersionPolicy.All(), wrong.ModelVersionPolicy.Latest(num_versions=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: wrong.ModelInput(data_type="FP32"),
            r"Input.data_type: .* got 'FP32'; write \"TYPE_FP32\"",
        ),
        (lambda: wrong.ModelInput(data_type="BYTES"), r"got 'BYTES'; write \"TYPE_STRING\""),
        (
            lambda: wrong.ModelInput(format="FORMAT_NCWH"),
            r"'FORMAT_NCWH'; did you mean \"FORMAT_NCHW\"\?",
        ),
        (
            lambda: wrong.ModelInput(dims=3),
            r"ModelInput.dims: must be a list, got 3; put it in brackets",
        ),
        (lambda: wrong.ModelInput(dims="3"), r"ModelInput.dims: must be a list, got '3'"),
        (
            lambda: wrong.ModelInput(dims=[2**63]),
            r"Input.dims: .* got 9223372036854775808; .* fits int64",
        ),
        (lambda: wrong.ModelInput(name=7), r"ModelInput.name: does not fit its field, got 7"),
        (
            lambda: wrong.ModelInstanceGroup(count=True),
            r"InstanceGroup.count: .* got True; .* fits int32",
        ),
        (lambda: wrong.ModelWarmup(inputs=[]), r"ModelWarmup.inputs: must be a mapping, got \[\]"),
        (
            lambda: wrong.ModelWarmup(inputs={"x": 1}),
            r"Warmup.inputs: must be a ModelWarmup.Input, got 1",
        ),
        (
            lambda: wrong.ModelInput(reshape=[1]),
            r"Input.reshape: must be a ModelTensorReshape, got \[1\]",
        ),
        (lambda: wrong.ModelWarmup.Input(zero_data=True, random_data=False), TWO_OF_ONE),
        (lambda: wrong.ModelVersionPolicy(all=ALL, latest=NEWEST), BOTH_POLICIES),
        (
            lambda: wrong.ModelInput(extra="optionl: true"),
            r"ModelInput.extra: cannot be parsed .*optionl",
        ),
    ],
)
def test_wrong_value_is_refused_by_name(make: Callable[[], object], message: str) -> None:
    """The error about an invalid value names the field, the value and the fix."""
    with pytest.raises(InvalidValueError, match=message):
        make()


def test_presence_is_kept() -> None:
    """``False`` in a choice and an empty message count as set, as in the file;
    a default is not written.
    """
    given = ModelWarmup.Input(zero_data=False).to_message()
    assert given.WhichOneof("input_data_type") == "zero_data"
    assert ModelWarmup.Input().to_message() == message_class("ModelWarmup.Input")()
    assert ModelInput(reshape=ModelTensorReshape()).to_message().HasField("reshape")
    graph = ModelOptimizationPolicy(graph=ModelOptimizationPolicy.Graph()).to_message()
    assert graph.HasField("graph")
    assert (graph.graph.level, graph.graph.ListFields()) == (0, [])


def test_later_changes_of_arguments_do_not_reach_the_value() -> None:
    """Lists and mappings are copied, so later changes of the originals have no effect."""
    dims, inputs = [1, 2], {"x": ModelWarmup.Input()}
    tensor, warmup = ModelInput(dims=dims), ModelWarmup(inputs=inputs)
    dims.append(3)
    inputs.clear()
    assert tensor == ModelInput(dims=[1, 2])
    assert list(warmup.inputs) == ["x"]


def test_keyword_of_python_is_reached() -> None:
    """The field ``global`` of a resource is ``global_``."""
    resource = ModelRateLimiter.Resource(name="gpu", global_=True, count=2)
    assert getattr(resource.to_message(), "global")
    assert ModelRateLimiter.Resource.from_message(resource.to_message()) == resource


def test_nested_messages_are_written() -> None:
    """Messages inside lists, maps and messages are written to their fields."""
    accelerators = ModelOptimizationPolicy.ExecutionAccelerators
    tensorrt = accelerators.Accelerator(name="tensorrt", parameters={"precision_mode": "FP16"})
    policy = ModelOptimizationPolicy(
        execution_accelerators=accelerators(gpu_execution_accelerator=[tensorrt])
    ).to_message()
    accelerator = policy.execution_accelerators.gpu_execution_accelerator[0]
    assert dict(accelerator.parameters) == {"precision_mode": "FP16"}
    queues = {1: ModelQueuePolicy(max_queue_size=8)}
    batching = ModelDynamicBatching(priority_levels=2, priority_queue_policy=queues).to_message()
    assert batching.priority_queue_policy[1].max_queue_size == 8
    zeros = ModelSequenceBatching.InitialState(zero_data=True)
    state = ModelSequenceBatching(state=[ModelSequenceBatching.State(initial_state=[zeros])])
    assert ModelSequenceBatching.from_message(state.to_message()) == state


def test_unknown_values_are_kept_as_extra() -> None:
    """An enum number without a name stays in ``extra`` and is written again."""
    message = message_class("ModelInput")(name="x", data_type=99)
    typed = ModelInput.from_message(message)
    assert typed.extra == "data_type: 99"
    assert typed.to_message() == message


def test_extra_is_merged_on_top() -> None:
    """Text in ``extra`` reaches fields in the syntax of ``config.pbtxt``."""
    tensor = ModelInput(name="x", dims=[1], extra="optional: true dims: [ 2 ]").to_message()
    assert tensor.optional
    assert list(tensor.dims) == [1, 2]


def test_repr_is_the_call() -> None:
    """The string of a value is the call that creates it, without defaults."""
    assert repr(ModelInput(name="x", dims=[-1])) == "ModelInput(name='x', dims=(-1,))"
