"""Members of answers as keyword arguments."""

from __future__ import annotations

from typing import Any

import pytest

from constructs_triton.cdk.endpoint.properties import EndpointOptions
from constructs_triton.cdk.inference_component.properties import InferenceComponentOptions
from constructs_triton_core.declared_values import declared_values
from constructs_triton_tools.operations.adopting.members import options_of
from constructs_triton_tools.operations.adopting.python_text import render

VARIANT: dict[str, Any] = {
    "VolumeSizeInGB": 60,
    "ModelDataDownloadTimeoutInSeconds": 1200,
    "ContainerStartupHealthCheckTimeoutInSeconds": 90,
    "EnableSSMAccess": True,
    "EnableNetworkIsolation": False,
}
COMPONENT: dict[str, Any] = {
    "MinMemoryRequiredInMb": 1024,
    "NumberOfAcceleratorDevicesRequired": 1.0,
    "NumberOfCpuCoresRequired": 0.5,
    "EnableCaching": False,
    "PlacementStrategy": "SPREAD",
}


@pytest.mark.parametrize(
    ("answer", "options", "expected"),
    [
        (
            VARIANT,
            EndpointOptions,
            {
                "volume_size": "cdk.Size.gibibytes(60)",
                "model_data_download_timeout": "cdk.Duration.minutes(20)",
                "container_startup_health_check_timeout": "cdk.Duration.seconds(90)",
                "enable_ssm_access": "True",
                "enable_network_isolation": "False",
            },
        ),
        (
            COMPONENT,
            InferenceComponentOptions,
            {
                "min_memory": "cdk.Size.mebibytes(1024)",
                "number_of_accelerator_devices": "1",
                "number_of_cpu_cores": "0.5",
                "enable_caching": "False",
                "placement_strategy": '"SPREAD"',
            },
        ),
    ],
    ids=["variant", "component"],
)
def test_member_has_the_name_of_its_property(
    answer: dict[str, Any], options: type, expected: dict[str, str]
) -> None:
    """Each member is the property that the constructs declare for it, with its unit."""
    found = {name: render(each, "") for name, each in options_of(answer, *answer, with_zero=True).items()}
    assert found == expected
    others = {"min_memory"}  # a parameter of the component itself, which is required
    assert found.keys() <= declared_values(options).keys() | others


def test_empty_members_are_left_out() -> None:
    """Members that are not set have no argument, nor have 0 and ``False`` unless they are asked for."""
    answer = {"MinCapacity": 0, "DisableScaleIn": False, "MaxCapacity": None}
    assert options_of(answer, *answer, "ModelCacheSetting") == {}
    assert options_of(answer, *answer, with_zero=True) == {"min_capacity": "0", "disable_scale_in": "False"}
