"""Values that are not known, and what a template makes of them."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from typing import Any

import pytest

from constructs_triton_core.cloud_assembly.intrinsics import Evaluator
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_core.cloud_assembly.unknown_values import (
    Unknown,
    UnknownList,
    contains_unknown,
    is_unknown,
)

_EQUALS = {"Fn::Equals": [{"Ref": "Secret"}, "a"]}
_SPLIT = {"Fn::Split": [":", {"Ref": "Secret"}]}
_BODY: dict[str, Any] = {
    "Mappings": {"Sizes": {"us-east-1": {"size": "small"}}},
    "Conditions": {
        "IsA": _EQUALS,
        "IsNotA": {"Fn::Not": [{"Condition": "IsA"}]},
        "IsKnown": {"Fn::Equals": ["a", "a"]},
    },
}


class _Values:
    """A resolver to which everything is unknown."""

    def ref(self, name: str) -> Any:
        return Unknown(f"unknown:{name}")

    def get_att(self, logical_id: str, attribute: str) -> Any:
        return self.ref(f"{logical_id}.{attribute}")

    def import_value(self, name: str) -> Any:
        return self.ref(name)

    def stack_output(self, stack: str, name: str, region: str | None) -> Any:
        return self.ref(f"{stack}.{name}.{region}")

    def availability_zones(self, region: str) -> Sequence[str]:
        raise AssertionError(f"the Zones of {region} are not known")


@pytest.fixture
def evaluator() -> Evaluator:
    """Return the evaluator of a template of which nothing is known."""
    return Evaluator(Template(_BODY), _Values(), unknown_function=lambda name, _: Unknown(name))


@pytest.mark.parametrize(
    "value",
    [
        {"Fn::Join": ["-", ["a", {"Ref": "Secret"}]]},
        {"Fn::Join": ["-", {"Ref": "Subnets"}]},
        {"Fn::Join": ["-", _SPLIT]},
        {"Fn::Sub": "arn:${Secret.Arn}"},
        {"Fn::Sub": ["${Name}", {"Name": {"Ref": "Secret"}}]},
        {"Fn::Select": [6, _SPLIT]},
        {"Fn::Select": [2, {"Ref": "Subnets"}]},
        {"Fn::Select": [{"Ref": "Index"}, ["a", "b"]]},
        {"Fn::Base64": {"Ref": "Secret"}},
        {"Fn::Cidr": [{"Ref": "Block"}, 2, 8]},
        {"Fn::Cidr": ["10.0.0.0/16", 2]},
        {"Fn::GetAZs": {"Ref": "Secret"}},
        {"Fn::FindInMap": ["Sizes", {"Ref": "Secret"}, "size"]},
        {"Fn::Length": _SPLIT},
        {"Fn::ToJsonString": {"a": [{"Ref": "Secret"}]}},
        {"Fn::If": ["IsA", "b", "c"]},
        {"Fn::Transform": {"Name": "Macro"}},
        {"Fn::FutureFunction": []},
    ],
    ids=str,
)
def test_what_is_made_of_an_unknown_value_is_unknown(evaluator: Evaluator, value: Any) -> None:
    """No function of an unknown value raises an error, and no result counts as known."""
    assert is_unknown(evaluator.evaluate(value))


def test_elements_of_an_unknown_list_differ(evaluator: Evaluator) -> None:
    """Two elements that a template selects are two values, since AWS refuses a subnet twice."""
    first, second = (evaluator.evaluate({"Fn::Select": [each, _SPLIT]}) for each in (4, 5))
    assert first != second


def test_conditions_of_unknown_values_exclude_each_other(evaluator: Evaluator) -> None:
    """A comparison is assumed to be false, noted, and never a reason to refuse a rule."""
    assert [evaluator.condition(name) for name in ("IsA", "IsNotA", "IsKnown")] == [
        False,
        True,
        True,
    ]
    assert evaluator.assumed == {"IsA", "IsNotA"}
    assert evaluator.evaluate({"Fn::If": ["IsKnown", "b", "c"]}) == "b"
    assert not evaluator.refutes(_EQUALS)
    assert not evaluator.refutes({"Fn::ValueOf": ["Vpc", "Tags.Owner"]})
    assert evaluator.refutes({"Fn::EachMemberEquals": [["a", "b"], "a"]})
    assert evaluator.holds({"Fn::EachMemberIn": [["a"], ["a", "b"]]})
    assert evaluator.holds({"Fn::Equals": [{"Ref": "Secret"}, {"Ref": "Secret"}]})


def test_unknown_values_reach_other_processes() -> None:
    """They stay unknown in a copy, also within a list, and become JSON as their stand-ins."""
    values = [Unknown("a:b").split_at(":"), {"b": Unknown("c")}]
    copied = pickle.loads(pickle.dumps(values))
    assert isinstance(copied[0], UnknownList)
    assert copied[0].element(5) == "a:b-5"
    assert contains_unknown(copied[1])
    assert json.loads(json.dumps(copied)) == [["a", "b"], {"b": "c"}]
