"""The properties of a container, which endpoints, variants and inference components have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypedDict

from aws_cdk import Duration

from constructs_triton.cdk.options.environment import TritonEnvironment
from constructs_triton.cdk.options.image import TritonImage
from constructs_triton.cdk.validation.properties import Property
from constructs_triton_core.facts import limits

__all__ = ["TEN_MINUTES", "ContainerOptions"]

TEN_MINUTES = "Duration.seconds(600)"  # the unit of the API


class ContainerOptions(TypedDict, total=False):
    """The image of a container, its variables, and how long it may take to start."""

    image: Annotated[
        TritonImage | None,
        Property(
            "The container image. The instance type decides between its GPU and its CPU version.",
            default_text="``TritonImage.dlc()``; for a component, the image of its endpoint",
            example='TritonImage.dlc("26.05")',
        ),
    ]
    environment: Annotated[
        TritonEnvironment | Mapping[str, str] | None,
        Property(
            "Environment variables of the container: a ``TritonEnvironment``, or a mapping of names to "
            "strings. The variables of a variant are added to those of its endpoint and replace variables of "
            "the same name.",
            example="TritonEnvironment(thread_count=16)",
        ),
    ]
    container_startup_health_check_timeout: Annotated[
        Duration | None,
        Property(
            "How long the container may take until its health check succeeds: 60 seconds to 1 hour. A "
            "deployment of a container that does not start waits for it.",
            default_text="derived from the size of the models",
            example=TEN_MINUTES,
            limit=limits.CONTAINER_STARTUP_HEALTH_CHECK_TIMEOUT_SECONDS,
        ),
    ]
    model_data_download_timeout: Annotated[
        Duration | None,
        Property(
            "How long the download of the models may take: 60 seconds to 1 hour.",
            default_text="derived from the size of the archive",
            example=TEN_MINUTES,
            limit=limits.MODEL_DATA_DOWNLOAD_TIMEOUT_SECONDS,
        ),
    ]
