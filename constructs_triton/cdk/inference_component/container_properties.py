"""The properties of ``ContainerInferenceComponent``, checked before anything is added to the tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Required

from aws_cdk import Duration

from constructs_triton.cdk.inference_component.properties import CopyOptions, check_copies, check_given_copies
from constructs_triton.cdk.inference_component.refused_properties import refuse_of_component
from constructs_triton.cdk.options.container_options import TEN_MINUTES
from constructs_triton.cdk.options.environment import check_limits
from constructs_triton.cdk.options.serving_image import ServingImage
from constructs_triton.cdk.repository.model_source import ModelSource, stored_models
from constructs_triton.cdk.validation.properties import Property, check_options, with_defaults
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import limits

__all__ = ["ContainerComponentOptions", "checked_container_options"]

_OF_TRITON = "SAGEMAKER_TRITON_"


class ContainerComponentOptions(CopyOptions, total=False):
    """The properties of a component whose container is not Triton."""

    image: Required[
        Annotated[
            ServingImage,
            Property(
                "The container image, which answers ``/ping`` and ``/invocations`` on port 8080.",
                example='ServingImage.from_registry("...", cuda_version="13.0")',
            ),
        ]
    ]
    model_data: Annotated[
        ModelSource | None,
        Property(
            "What SageMaker copies to ``/opt/ml/model``: ``ModelSource.from_s3_prefix`` for files, or "
            "``ModelSource.from_bucket`` for an archive. It is not read at synth.",
            default_text="none: the image contains the model, or downloads it when it starts",
            example='ModelSource.from_s3_prefix(bucket, "llama/")',
        ),
    ]
    environment: Annotated[
        Mapping[str, str] | None,
        Property(
            "Environment variables of the container. The template contains them as plain text.",
            default_text="none",
            example='{"SM_VLLM_MAX_MODEL_LEN": "8192"}',
        ),
    ]
    container_startup_health_check_timeout: Annotated[
        Duration | None,
        Property(
            "How long the container may take until its health check succeeds: 60 seconds to 1 hour. A "
            "deployment of a container that does not start waits for it.",
            default_text="1 hour, since the size of the model is not known at synth",
            example=TEN_MINUTES,
            limit=limits.CONTAINER_STARTUP_HEALTH_CHECK_TIMEOUT_SECONDS,
        ),
    ]
    model_data_download_timeout: Annotated[
        Duration | None,
        Property(
            "How long the download of ``model_data`` may take: 60 seconds to 1 hour.",
            default_text="1 hour",
            example=TEN_MINUTES,
            limit=limits.MODEL_DATA_DOWNLOAD_TIMEOUT_SECONDS,
        ),
    ]


def checked_container_options(given: ContainerComponentOptions) -> ContainerComponentOptions:
    """Check the properties of a component and add the defaults.

    Raises:
        TypeError: there is no such property.
        InvalidValueError: a value is out of range, or components do not support the property.
    """
    refuse_of_component(given)
    check_given_copies(given)
    check_options("ContainerInferenceComponent()", given, ContainerComponentOptions, others=("endpoint",))
    options = with_defaults(given, ContainerComponentOptions)
    check_copies(options)
    _check_environment(options["environment"] or {})
    source = options["model_data"]
    if source is not None and stored_models(source) is None:
        raise InvalidValueError(
            "model_data: must be one archive or files in S3; upload the folder with "
            "`aws s3 sync FOLDER s3://BUCKET/PREFIX/`, and use ModelSource.from_s3_prefix"
        )
    return options


def _check_environment(environment: Mapping[str, str]) -> None:
    for name, value in environment.items():
        if not isinstance(value, str):
            raise InvalidValueError(
                f'environment["{name}"]: must be a string, got {value!r}; write "{str(value).lower()}"'
            )
        if name.startswith(_OF_TRITON):
            raise InvalidValueError(
                f'environment["{name}"]: is a variable of Triton; remove it, or use TritonInferenceComponent'
            )
    check_limits(environment)
