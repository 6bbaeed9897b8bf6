"""The keywords that the name of a CloudFormation property gives:
``VolumeSizeInGB`` is ``volume_size``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, is_typeddict

from constructs_triton import (
    AsyncInferenceConfig,
    CapacityReservationConfig,
    ComponentDeployment,
    ComponentEndpointOptions,
    DataCapture,
    Deployment,
    EndpointOptions,
    InferenceComponentOptions,
    MetricsConfig,
)
from constructs_triton_core.declared_values import declared_values

ASYNC = "`async_inference=AsyncInferenceConfig({})`"
RESERVATION = "`capacity_reservation=CapacityReservationConfig({})`"
CAPTURE = "`data_capture=DataCapture({})`"
METRICS = "`metrics_config=MetricsConfig({})`"
ROLLING = "`deployment=Deployment.rolling({})`"
COPIES = "`deployment=ComponentDeployment.rolling({})`"
_SHARED = "`TritonComponentEndpoint({})`"
_UNIT = re.compile(r"(_required)?(_in_(seconds|gb|mb))?$")
Declaration = type | Callable[..., Any]
#: What declares the keywords of a structure, by the beginning of its name, and how a row shows one.
_OWNERS: dict[str, tuple[tuple[str, Declaration, str], ...]] = {
    "CfnModel": (("", EndpointOptions, "`{}`"),),
    "CfnEndpointConfig": (
        ("AsyncInference", AsyncInferenceConfig, ASYNC),
        ("CapacityReservation", CapacityReservationConfig, RESERVATION),
        ("Capture", DataCapture, CAPTURE),
        ("DataCapture", DataCapture, CAPTURE),
        ("ManagedInstanceScaling", ComponentEndpointOptions, _SHARED),
        ("MetricsConfig", MetricsConfig, METRICS),
        ("PrefixAware", ComponentEndpointOptions, _SHARED),
        ("", EndpointOptions, "`{}`"),
    ),
    "CfnEndpoint": (
        ("RollingUpdatePolicy", Deployment.rolling, ROLLING),
        ("", EndpointOptions, "`{}`"),
    ),
    "CfnInferenceComponent": (
        ("InferenceComponentRollingUpdatePolicy", ComponentDeployment.rolling, COPIES),
        ("", InferenceComponentOptions, "`{}`"),
    ),
}


def keyword_of(name: str, property: str) -> str | None:
    """Return the row of a property of an L1 class, if its name is that of a declared keyword."""
    structure, _, member = property.rpartition(".")
    for beginning, declaration, row in _OWNERS[name]:
        if structure.startswith(beginning):
            keyword = _UNIT.sub("", member)
            ending = _keywords(declaration).get(keyword)
            return None if ending is None else f"{row.format(keyword)}{ending}"
    return None


@cache
def _keywords(declaration: Declaration) -> Mapping[str, str]:
    """Return the keywords with what follows each in its row: a default that is derived."""
    if not is_typeddict(declaration):
        return dict.fromkeys(inspect.signature(declaration).parameters, "")
    defaults = {name: each.default_text for name, each in declared_values(declaration).items()}
    return {
        name: f", or {text}" if text.startswith("derived") else ""
        for name, text in defaults.items()
    }
