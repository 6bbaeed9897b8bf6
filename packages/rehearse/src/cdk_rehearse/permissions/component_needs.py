"""What requests about inference components need beside the permission for their first resource.

Source: Service Authorization Reference, Amazon SageMaker: InvokeEndpoint and CreateInferenceComponent have
two resource types, endpoint and inference-component. No source says whether one of them is enough, so both
are needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from constructs_triton_core.facts.inference_components import COMPONENT_HEADER

from ..services.service_api import ServiceApi
from .s3_needs import Need

__all__ = ["COMPONENT_ACTIONS", "component_needs"]

COMPONENT_ACTIONS = {
    "CreateInferenceComponent",
    "DeleteInferenceComponent",
    "DescribeInferenceComponent",
    "UpdateInferenceComponent",
    "UpdateInferenceComponentRuntimeConfig",
}


def component_needs(request: Any, api: ServiceApi) -> Iterator[Need]:
    """The need for the second resource of a request."""
    action = request._get_action()
    prefix = f"arn:aws:sagemaker:{api.region}:{api.account}"
    component = request.headers.get(COMPONENT_HEADER)
    if action == "InvokeEndpoint" and component is not None:
        yield "sagemaker:InvokeEndpoint", f"{prefix}:inference-component/{component}", {}
    if action == "CreateInferenceComponent":
        endpoint = json.loads(request.body)["EndpointName"]
        yield "sagemaker:CreateInferenceComponent", f"{prefix}:endpoint/{endpoint}", {}
