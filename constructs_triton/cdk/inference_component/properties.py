"""The properties of ``TritonInferenceComponent``, checked before anything is added to the tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Required, TypedDict

from aws_cdk import RemovalPolicy, Size
from aws_cdk import aws_logs as logs

from constructs_triton.cdk.endpoint.log_group import check_log_retention
from constructs_triton.cdk.options.component_deployment import ComponentDeployment
from constructs_triton.cdk.options.instance_pool import INSTANCE_POOL_EXAMPLE, InstancePool
from constructs_triton.cdk.options.removal import check_removal_policy
from constructs_triton.cdk.options.variant_options import ContainerOptions
from constructs_triton.cdk.repository.properties import CompressionType
from constructs_triton.cdk.validation.properties import check_properties, refuse_properties
from constructs_triton_core.declared_values import Value, with_defaults
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import limits
from constructs_triton_core.tokens import is_token

# The other keyword arguments of the construct.
_OTHERS = ("endpoint", "model_repository", "model", "ensemble")


class CopyOptions(TypedDict, total=False):
    """The properties of all inference components: what each copy reserves, how many,
    and how they change.
    """

    min_memory: Required[
        Annotated[
            Size,
            Value(
                "Main memory that each copy reserves, at least 128 MiB. It is not the memory of "
                "GPUs, and not a limit. "
                "SageMaker can place less than the memory of the instance type.",
                example="Size.mebibytes(4096)",
            ),
        ]
    ]
    max_memory: Annotated[
        Size | None,
        Value(
            "Main memory that each copy may use.",
            default_text="no limit",
            example="Size.mebibytes(8192)",
        ),
    ]
    number_of_accelerator_devices: Annotated[
        float | None,
        Value(
            "Whole GPUs that each copy reserves. Required on instance types with GPUs, where 0 is "
            "for models that run on the CPU. Not supported on other types.",
            default_text="none",
            example="1",
        ),
    ]
    number_of_cpu_cores: Annotated[
        float | None,
        Value("vCPUs that each copy reserves, at least 0.25.", default_text="none", example="4"),
    ]
    copy_count: Annotated[
        float | None,
        Value(
            "Number of copies at the first deployment, at least 1. "
            "With scaling, do not change it later.",
            default=1,
            limit=limits.COPY_COUNT,
        ),
    ]
    inference_component_name: Annotated[
        str | None,
        Value(
            "Name of the component, unique in the account and Region.",
            default_text=("a generated name in lower case, so that the component can be replaced"),
            limit=limits.INFERENCE_COMPONENT_NAME,
        ),
    ]
    enable_caching: Annotated[
        bool | None,
        Value(
            "Whether each instance keeps the image and the models, so that further copies start "
            "sooner. SageMaker always does this on types with more than 232 GiB of local NVMe.",
            default_text="SageMaker's",
            example="True",
        ),
    ]
    placement_strategy: Annotated[
        Literal["SPREAD", "BINPACK"] | None,
        Value(
            "How SageMaker places copies: ``SPREAD`` over the instances, or ``BINPACK`` onto few.",
            default_text="SageMaker's",
        ),
    ]
    max_zone_imbalance: Annotated[
        float | None,
        Value(
            "By how many copies Availability Zones may differ, "
            "with a ``placement_strategy``: 0 to 100.",
            default=0,
            limit=limits.MAX_IMBALANCE,
        ),
    ]
    deployment: Annotated[
        ComponentDeployment | None,
        Value(
            "How an update replaces the copies, and which alarms roll it back.",
            default_text="``ComponentDeployment.rolling()``, half of the copies at a time",
            example="ComponentDeployment.rolling()",
        ),
    ]
    log_retention: Annotated[
        logs.RetentionDays | None,
        Value(
            "How long CloudWatch keeps the logs of the containers. Needs an "
            "``inference_component_name``.",
            default_text="forever, in a log group that SageMaker creates",
            example="logs.RetentionDays.ONE_MONTH",
        ),
    ]
    removal_policy: Annotated[
        RemovalPolicy | None,
        Value(
            "``RETAIN`` keeps the component and its model when it is removed from the stack.",
            default_text="``DESTROY``",
            example="RemovalPolicy.RETAIN",
        ),
    ]


class InferenceComponentOptions(ContainerOptions, CopyOptions, total=False):
    """The properties of an inference component besides its endpoint and its models."""

    instance_pools: Annotated[
        Sequence[InstancePool] | None,
        Value(
            "Other models on some instance types of an endpoint with ``instance_pools``, such as "
            "TensorRT plans for their GPUs.",
            default_text="the same models on every type",
            example=f"{INSTANCE_POOL_EXAMPLE[:-1]}, model_repository=...)",
        ),
    ]
    compression_type: Annotated[
        CompressionType | None,
        Value(
            "How the models are stored in S3. ``CompressionType.NONE`` stores each file as an "
            "object, so further copies start sooner: nothing is unpacked.",
            default_text=(
                "``CompressionType.GZIP``, one archive; models that are in S3 stay as they are"
            ),
            example="CompressionType.NONE",
        ),
    ]


def checked_component_options(given: InferenceComponentOptions) -> InferenceComponentOptions:
    """Check the properties of a component and add the defaults.

    Raises:
        TypeError: there is no such property.
        InvalidValueError: a value is out of range, or components do not support the property.
    """
    refuse_properties(given, "inference components")
    check_given_copies(given)
    check_properties("TritonInferenceComponent()", given, InferenceComponentOptions, others=_OTHERS)
    options = with_defaults(given, InferenceComponentOptions)
    check_copies(options)
    return options


def check_given_copies(given: CopyOptions) -> None:
    """Check what the declarations of the properties cannot say, before their types are checked.

    Raises:
        InvalidValueError: SageMaker refuses the number of copies.
    """
    _check_copy_count(given.get("copy_count"))


def check_copies(options: CopyOptions) -> None:
    """Check properties that depend on each other."""
    name = options["inference_component_name"]
    check_log_retention("inference_component_name", name, options["log_retention"])
    check_removal_policy(options["removal_policy"], "components")


def _check_copy_count(copy_count: object) -> None:
    """Check that a component is created with a copy; the limit alone would not say why."""
    if copy_count == 0 and not is_token(copy_count):
        raise InvalidValueError(
            "copy_count: SageMaker creates a component with at least 1 copy, got 0; set 1, and "
            "call auto_scale_copy_count(min_capacity=0) to let it scale to zero"
        )
