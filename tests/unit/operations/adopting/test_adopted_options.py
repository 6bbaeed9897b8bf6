"""Members of answers as keyword arguments."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from constructs_triton.cdk.endpoint.properties import EndpointOptions
from constructs_triton.cdk.inference_component.endpoint_properties import ComponentEndpointOptions
from constructs_triton.cdk.inference_component.properties import InferenceComponentOptions
from constructs_triton.cdk.scaling.target_tracking import ScalingPolicyOptions
from constructs_triton_core.declared_values import declared_values
from constructs_triton_tools.operations.adopting import python_text
from constructs_triton_tools.operations.adopting.python_text import options_of, render
from constructs_triton_tools.operations.adopting.stack.variant_code import routing_options

COMPONENT = InferenceComponentOptions
DOWNLOAD = "ModelDataDownloadTimeoutInSeconds"
STARTUP = "ContainerStartupHealthCheckTimeoutInSeconds"


@pytest.mark.parametrize(
    ("options", "member", "value", "name", "expected"),
    [
        (EndpointOptions, "VolumeSizeInGB", 60, "volume_size", "cdk.Size.gibibytes(60)"),
        (
            EndpointOptions,
            DOWNLOAD,
            1200,
            "model_data_download_timeout",
            "cdk.Duration.minutes(20)",
        ),
        (
            EndpointOptions,
            STARTUP,
            90,
            "container_startup_health_check_timeout",
            "cdk.Duration.seconds(90)",
        ),
        (EndpointOptions, "EnableSSMAccess", True, "enable_ssm_access", "True"),
        (EndpointOptions, "EnableNetworkIsolation", False, "enable_network_isolation", "False"),
        (COMPONENT, "MinMemoryRequiredInMb", 1024, "min_memory", "cdk.Size.mebibytes(1024)"),
        (
            COMPONENT,
            "NumberOfAcceleratorDevicesRequired",
            1.0,
            "number_of_accelerator_devices",
            "1",
        ),
        (COMPONENT, "NumberOfCpuCoresRequired", 0.5, "number_of_cpu_cores", "0.5"),
        (COMPONENT, "EnableCaching", False, "enable_caching", "False"),
        (COMPONENT, "PlacementStrategy", "SPREAD", "placement_strategy", '"SPREAD"'),
    ],
)
def test_member_has_the_name_of_its_property(
    options: type, member: str, value: object, name: str, expected: str
) -> None:
    """Each member is the property that the constructs declare for it, with its unit."""
    (found,) = options_of({member: value}, member, with_zero=True).items()
    assert (found[0], render(found[1], "")) == (name, expected)
    others = {"min_memory"}  # a parameter of the component itself, which is required
    assert name in declared_values(options).keys() | others


#: Adoption does not write these: AWS has no such setting, it has the default, or another property
#: has it.
NOT_WRITTEN = {
    "vpc_subnets": "the VPC is imported with these subnets",
    "removal_policy": "the template's",
    "off_switch": "an adopted endpoint is never deleted",
    "scaling_guard": "the deployment's",
    "verify_update": "the deployment's",
    "verify_responses": "the deployment's",
    "container_metrics": "the archive's",
    "custom_metrics": "the archive's",
    "log_retention": "the log group exists",
}


@pytest.mark.parametrize(
    "options",
    [EndpointOptions, ComponentEndpointOptions, InferenceComponentOptions, ScalingPolicyOptions],
)
def test_adoption_writes_each_declared_property(options: type) -> None:
    """A new property is written by adoption, or has a reason for being left out."""
    folder = Path(python_text.__file__).parent
    trees = [ast.parse(path.read_text()) for path in folder.rglob("*.py")]
    strings = {
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    names = {node.arg for tree in trees for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    written = strings | names | {next(iter(options_of({each: 1}, each))) for each in strings}
    assert [
        name for name in declared_values(options) if name not in written | NOT_WRITTEN.keys()
    ] == []
    assert not written & NOT_WRITTEN.keys()


def test_prefix_aware_routing_keeps_its_numbers() -> None:
    """The construct requires both numbers with this strategy, so adoption writes them."""
    numbers = {"PrefixLength": 2048, "ConcurrencyThreshold": 8}
    routing = {"RoutingStrategy": "PREFIX_AWARE", "PrefixAwareRoutingConfig": numbers}
    code: Any = None  # only a strategy that is missing is reported
    found = routing_options(code, {"RoutingConfig": routing}, is_default=True)
    assert {name: render(each, "") for name, each in found.items()} == {
        "routing_strategy": '"PREFIX_AWARE"',
        "prefix_length": "2048",
        "concurrency_threshold": "8",
    }


def test_empty_members_are_left_out() -> None:
    """Members that are not set have no argument,
    nor have 0 and ``False`` unless they are asked for.
    """
    answer = {"MinCapacity": 0, "DisableScaleIn": False, "MaxCapacity": None}
    assert options_of(answer, *answer, "ModelCacheSetting") == {}
    assert options_of(answer, *answer, with_zero=True) == {
        "min_capacity": "0",
        "disable_scale_in": "False",
    }
