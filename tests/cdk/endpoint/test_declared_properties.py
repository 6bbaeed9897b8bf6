"""Each property is declared once; signatures,
help and defaults are derived from the declaration.
"""

from __future__ import annotations

import inspect
import pydoc
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2

from constructs_triton import (
    AlarmThresholds,
    ComponentAlarmThresholds,
    ComponentEndpointOptions,
    EndpointOptions,
    InferenceComponentOptions,
    InstanceType,
    TritonAlarms,
    TritonComponentAlarms,
    TritonComponentEndpoint,
    TritonEndpoint,
    TritonEnsembleEndpoint,
    TritonInferenceComponent,
    TritonMultiModelEndpoint,
    TritonVariant,
    VariantOptions,
)
from constructs_triton.cdk.validation.properties import check_properties
from constructs_triton_core.declared_values import DERIVED, declared_values, with_defaults
from constructs_triton_core.errors import InvalidValueError

GPU = InstanceType.of("ml.g5.xlarge")
CLASSES: list[tuple[Any, type, set[str]]] = [
    (TritonEndpoint, EndpointOptions, {"scope", "id", "model_repository", "model"}),
    (TritonEnsembleEndpoint, EndpointOptions, {"scope", "id", "model_repository", "ensemble"}),
    (
        TritonMultiModelEndpoint,
        EndpointOptions,
        {"scope", "id", "model_repository", "model_cache_setting"},
    ),
    (TritonVariant, VariantOptions, {"variant_name", "model_repository", "model", "instance_type"}),
    (TritonComponentEndpoint, ComponentEndpointOptions, {"scope", "id"}),
    (
        TritonInferenceComponent,
        InferenceComponentOptions,
        {"scope", "id", "endpoint", "model_repository", "model", "ensemble"},
    ),
    (TritonAlarms, AlarmThresholds, {"scope", "id", "endpoint", "actions", "alarm_name_prefix"}),
    (
        TritonComponentAlarms,
        ComponentAlarmThresholds,
        {"scope", "id", "component", "actions", "alarm_name_prefix"},
    ),
]
IDS = [each.__name__ for each, _, _ in CLASSES]


@pytest.mark.parametrize(("cls", "options", "own"), CLASSES, ids=IDS)
def test_signature_lists_every_property(cls: Any, options: type, own: set[str]) -> None:
    """``inspect.signature`` of a class and of its ``__init__`` list every property
    and no ``**options``.
    """
    names = set(inspect.signature(cls).parameters)
    assert names == own | set(declared_values(options))
    assert set(inspect.signature(cls.__init__).parameters) == {"self", *names}


@pytest.mark.parametrize(("cls", "options", "own"), CLASSES, ids=IDS)
def test_help_documents_every_property(cls: Any, options: type, own: set[str]) -> None:
    """``help()`` contains the documentation of every property."""
    text = " ".join(pydoc.plain(pydoc.render_doc(cls)).replace("|", " ").split())
    for name, entry in declared_values(options).items():
        assert f"``{name}`` {entry.sentence}" in text


def test_signature_has_types_and_defaults() -> None:
    """Required properties have no default, derived ones ``DERIVED``,
    and those of variants ``None``.
    """
    endpoint = inspect.signature(TritonEndpoint).parameters
    assert endpoint["model_repository"].default is inspect.Parameter.empty
    assert endpoint["instance_type"].annotation == InstanceType | None
    assert endpoint["vpc"].annotation == ec2.IVpc | None
    assert endpoint["initial_instance_count"].default == 1
    assert repr(endpoint["inference_ami_version"].default) == "<derived>"
    assert inspect.signature(TritonVariant).parameters["initial_instance_count"].default is None
    assert (
        repr(inspect.signature(TritonAlarms).parameters["no_invocations_for"].default)
        == "Duration.days(1)"
    )


def test_subclass_keeps_its_own_signature() -> None:
    """A subclass with its own ``__init__`` shows its own parameters;
    any other shows all properties.
    """

    class Own(TritonEndpoint):
        def __init__(self, scope: cdk.Stack, name: str) -> None:
            raise NotImplementedError

    class Inherited(TritonEndpoint):
        pass

    assert list(inspect.signature(Own).parameters) == ["scope", "name"]
    assert inspect.signature(Inherited) == inspect.signature(TritonEndpoint)


@pytest.mark.parametrize("name", list(declared_values(EndpointOptions)))
def test_declaration_is_complete(name: str) -> None:
    """Each property has documentation that ends in a period,
    and an example or a limit for its errors.
    """
    entry = declared_values(EndpointOptions)[name]
    assert entry.text.endswith(".")
    assert entry.example or entry.limit or name == "routing_strategy"


@pytest.mark.parametrize(
    "name", [each for each in declared_values(EndpointOptions) if each != "routing_strategy"]
)
def test_every_property_checks_its_type(name: str) -> None:
    """A value of another type raises an error that names the property."""
    given: dict[str, Any] = {"instance_type": GPU, name: object()}
    with pytest.raises(InvalidValueError, match=f"^{name}: must be "):
        check_properties("TritonEndpoint()", given, EndpointOptions)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"variants": "Blue"}, '^variants: must be a list, got "Blue"; write '),
        (
            {"security_groups": ["sg-1"]},
            r'^security_groups: .* ISecurityGroup, got "sg-1"; write ec2\.Security',
        ),
        (
            {"security_groups": []},
            "^security_groups: must have 1 to 5 security groups, got 0; add one",
        ),
        ({"vpc": "vpc-1"}, r'^vpc: .* IVpc, got "vpc-1"; write ec2\.Vpc\.from_lookup'),
        ({"scaling_guard": "yes"}, "^scaling_guard: .* bool, got"),
        ({"initial_variant_weight": True}, "^initial_variant_weight: must be a number, got True"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_wrong_value_is_an_error_with_an_example(given: dict[str, Any], message: str) -> None:
    """Lists, constructs, booleans and numbers are checked against their annotations."""
    with pytest.raises(InvalidValueError, match=message):
        check_properties("TritonEndpoint()", {"instance_type": GPU, **given}, EndpointOptions)


def test_six_security_groups_are_too_many() -> None:
    """SageMaker accepts at most five security groups."""
    stack = cdk.Stack()
    groups = [ec2.SecurityGroup.from_security_group_id(stack, f"G{n}", f"sg-{n}") for n in range(6)]
    check_properties(
        "TritonEndpoint()", {"instance_type": GPU, "security_groups": groups[:5]}, EndpointOptions
    )
    with pytest.raises(InvalidValueError, match=r"^security_groups: .* got 6; remove 1"):
        check_properties(
            "TritonEndpoint()", {"instance_type": GPU, "security_groups": groups}, EndpointOptions
        )


def test_none_means_the_default() -> None:
    """``None`` is the same as leaving a property out, except for a derived property."""
    given: EndpointOptions = {"instance_type": GPU, "initial_instance_count": None, "image": None}
    options = with_defaults(given, EndpointOptions)
    assert (options["initial_instance_count"], options["variant_name"], options["vpc"]) == (
        1,
        "AllTraffic",
        None,
    )
    assert "inference_ami_version" not in options
    given["inference_ami_version"] = None
    assert with_defaults(given, EndpointOptions)["inference_ami_version"] is None
    derived = [
        name for name, each in declared_values(EndpointOptions).items() if each.default is DERIVED
    ]
    assert derived == ["inference_ami_version"]
