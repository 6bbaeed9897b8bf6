"""Members of answers as keyword arguments."""

from __future__ import annotations

import pytest

from constructs_triton.cdk.endpoint.properties import EndpointOptions
from constructs_triton.cdk.inference_component.properties import InferenceComponentOptions
from constructs_triton.cdk.validation.properties import declared_properties
from constructs_triton_tools.operations.adopting.python_text import options_of, render

COMPONENT = InferenceComponentOptions
DOWNLOAD = "ModelDataDownloadTimeoutInSeconds"
STARTUP = "ContainerStartupHealthCheckTimeoutInSeconds"


@pytest.mark.parametrize(
    ("options", "member", "value", "name", "expected"),
    [
        (EndpointOptions, "VolumeSizeInGB", 60, "volume_size", "cdk.Size.gibibytes(60)"),
        (EndpointOptions, DOWNLOAD, 1200, "model_data_download_timeout", "cdk.Duration.minutes(20)"),
        (EndpointOptions, STARTUP, 90, "container_startup_health_check_timeout", "cdk.Duration.seconds(90)"),
        (EndpointOptions, "EnableSSMAccess", True, "enable_ssm_access", "True"),
        (EndpointOptions, "EnableNetworkIsolation", False, "enable_network_isolation", "False"),
        (COMPONENT, "MinMemoryRequiredInMb", 1024, "min_memory", "cdk.Size.mebibytes(1024)"),
        (COMPONENT, "NumberOfAcceleratorDevicesRequired", 1.0, "number_of_accelerator_devices", "1"),
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
    assert name in declared_properties(options).keys() | others


def test_empty_members_are_left_out() -> None:
    """Members that are not set have no argument, nor have 0 and ``False`` unless they are asked for."""
    answer = {"MinCapacity": 0, "DisableScaleIn": False, "MaxCapacity": None}
    assert options_of(answer, *answer, "ModelCacheSetting") == {}
    assert options_of(answer, *answer, with_zero=True) == {"min_capacity": "0", "disable_scale_in": "False"}
