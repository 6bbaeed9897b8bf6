"""What tests pass to helpers by mistake."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from aws_cdk.assertions import Template
from cdk_apps import add_many, make_stack, write_repository

from constructs_triton import testing
from constructs_triton_client import InMemoryTransport, TritonClient
from constructs_triton_core.errors import ConstructsTritonError, InvalidValueError

WRONG: tuple[Any, ...] = (
    1,
    1.5,
    ["a"],
    [1],
    {"a": 1},
    {"a": "b"},
    {1: 2},
    True,
    object(),
    b"x",
    (1, 2),
    set(),
)
HELPERS = (
    testing.assert_endpoint,
    testing.assert_scales,
    testing.assert_no_replacement,
    testing.assert_update_keeps_serving,
    testing.rehearse,
    testing.stable_template,
    testing.assert_responses,
)
# So that arguments after a wrong one are not looked at in vain.
QUICK = {"failures": "none", "orders": 1, "on": "InvocationsPerInstance"}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """A right value of each positional argument."""
    path = write_repository(tmp_path_factory.mktemp("models"))
    stack = make_stack()
    add_many(stack, path)
    client = TritonClient(InMemoryTransport(lambda tensors: tensors))
    # A template is read faster than a stack is synthesized, and has no arguments of its own.
    template = tmp_path_factory.mktemp("cdk") / "S.template.json"
    template.write_text(json.dumps({"Resources": {"T": {"Type": "AWS::SNS::Topic"}}}))
    names = dict.fromkeys(("before", "after", "old", "new"), template)
    return {
        **names,
        "stack": Template.from_stack(stack),
        "client": client,
        "recorded": str(path / "requests.jsonl"),
    }


@pytest.mark.parametrize("helper", HELPERS, ids=lambda helper: helper.__name__)
def test_argument_of_a_wrong_type_is_named(
    helper: Callable[..., Any], sources: Mapping[str, Any]
) -> None:
    """No value of any argument of any helper gives an error of Python that names none of them."""
    parameters = inspect.signature(helper).parameters
    given = {name: sources[name] for name in parameters if name in sources}
    given |= {name: value for name, value in QUICK.items() if name in parameters}
    for name in parameters:
        for value in WRONG:
            try:
                helper(**{**given, name: value})
            except (AssertionError, ConstructsTritonError):
                continue


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"initial_instance_counts": 1}, 'write initial_instance_counts={"AllTraffic": 1}'),
        ({"initial_instance_counts": [2]}, "must be a mapping by name, got [2]"),
        ({"initial_variant_weights": {"a": "1"}}, "must be a mapping from names to numbers"),
        ({"instance_types": {"a": "ml.g5.xlarge"}}, 'write instance_types=["ml.g5.xlarge"]'),
        ({"environment": ["A"]}, 'write environment={"SAGEMAKER_TRITON_LOG_VERBOSE": '),
        ({"models": 1}, "models: must be a string or a list of strings, got 1"),
        ({"name": 1}, 'write name="digits"'),
    ],
)
def test_error_shows_the_form(
    arguments: dict[str, Any], message: str, sources: Mapping[str, Any]
) -> None:
    """The message has the argument, what it must be, and how it is written."""
    with pytest.raises(InvalidValueError, match=re.escape(message)):
        testing.assert_endpoint(sources["stack"], **arguments)


def test_single_string_is_a_list_of_one(sources: Mapping[str, Any]) -> None:
    """One type or one code may be written without a list, and is not taken for its characters."""
    empty: dict[str, Any] = {"Resources": {}}
    bucket = {"Resources": {"B": {"Type": "AWS::S3::Bucket", "Properties": {}}}}
    with pytest.raises(AssertionError, match="would replace or delete 1 of 1"):
        testing.assert_no_replacement(bucket, empty)
    testing.assert_no_replacement(bucket, empty, allowed="AWS::S3::Bucket")
    with pytest.raises(InvalidValueError, match="no-such-code"):
        testing.rehearse(sources["old"], None, acknowledge="no-such-code", failures="none")
