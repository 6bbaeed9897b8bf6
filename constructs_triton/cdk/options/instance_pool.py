"""``InstancePool``: one of several instance types of an endpoint, in order of priority."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, cast

from aws_cdk import Stack
from constructs import Construct

from constructs_triton.cdk.options.inference_ami import FOR_THE_IMAGE
from constructs_triton.cdk.repository.model_repository import TritonModelRepository
from constructs_triton.cdk.validation.property_types import check_type
from constructs_triton_core.errors import ConstructsTritonError, InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.tokens import is_token
from triton_model_check.facts.published import load

INSTANCE_TYPE_EXAMPLE = 'InstanceType.of("ml.g5.xlarge")'
INSTANCE_POOL_EXAMPLE = f"InstancePool({INSTANCE_TYPE_EXAMPLE})"


@dataclass(frozen=True, slots=True)
class InstancePool:
    """One instance type of an endpoint with several. The position in the list is its priority.

    SageMaker uses the next type only if it has no capacity for a type. It does not if a container
    fails.

    Args:
        instance_type: Type of the instances.
        model_repository: Another repository on instances of this type, such as TensorRT plans for
            its GPU. Default: that of the endpoint. Not supported on component endpoints.
        model: Another model of the repository on instances of this type. Default: that of the
            endpoint. Not supported on component endpoints.

    Raises:
        InvalidValueError: a value of the wrong type.
    """

    instance_type: InstanceType
    _: KW_ONLY
    model_repository: TritonModelRepository | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        check_type("instance_type", self.instance_type, (InstanceType, INSTANCE_TYPE_EXAMPLE))
        if self.instance_type is None:
            raise InvalidValueError(f"instance_type: is required; write {INSTANCE_POOL_EXAMPLE}")
        check_type(
            "model_repository",
            self.model_repository,
            (TritonModelRepository, "TritonModelRepository(stack, id, source=...)"),
        )
        check_type("model", self.model, (str, '"scorer"'))

    def __str__(self) -> str:
        return self.instance_type.name


def has_own_models(pool: InstancePool) -> bool:
    """Return whether instances of this type load other models than the endpoint's."""
    return pool.model_repository is not None or pool.model is not None


def check_instances(options: Any) -> None:
    """Check ``instance_type`` and ``instance_pools``; a single pool becomes the instance type.

    Raises:
        InvalidValueError: both or neither are given, or types that cannot be in one list.
    """
    given = options["instance_type"]
    pools = cast(Sequence[InstancePool] | None, options["instance_pools"])
    if pools is None:
        if given is None:
            raise InvalidValueError(
                f"instance_type: is required; write instance_type={INSTANCE_TYPE_EXAMPLE}"
            )
        return
    if given is not None:
        raise InvalidValueError(
            f"instance_type: not supported together with instance_pools, got {given}; remove it, "
            "since the first pool is used first"
        )

    _check_types([pool.instance_type for pool in pools])
    if all(has_own_models(pool) for pool in pools):
        raise InvalidValueError(
            "instance_pools: no pool uses the model_repository of the endpoint; set the endpoint's "
            f"model_repository to that of {pools[0]}, and remove it from this pool"
        )
    if options.get("capacity_reservation") is not None:
        raise InvalidValueError(
            "capacity_reservation: not supported together with instance_pools, since a reservation "
            "is of one instance type; remove one of them"
        )
    if len(pools) == 1:
        # Whether SageMaker accepts a list of one is not known.
        options["instance_type"] = pools[0].instance_type
        options["instance_pools"] = None


def _check_types(types: Sequence[InstanceType]) -> None:
    """Check that the types differ, and that all have GPUs or none.

    Raises:
        InvalidValueError: they do not.
    """
    names = [instance_type.name for instance_type in types]
    for name in names:
        if names.count(name) > 1:
            raise InvalidValueError(
                "instance_pools: each instance type must be unique, "
                f'got "{name}" twice; remove one of them'
            )

    known = [instance_type for instance_type in types if not is_token(instance_type.name)]
    with_gpu = [instance_type.name for instance_type in known if instance_type.has_gpu]
    without = [instance_type.name for instance_type in known if not instance_type.has_gpu]
    if with_gpu and without:
        raise InvalidValueError(
            "instance_pools: all types must have GPUs or none, since their container images "
            f'differ, got "{with_gpu[0]}" and "{without[0]}"; remove one of them'
        )


def instance_types_of(options: Any) -> tuple[InstanceType, ...]:
    """Return the instance types of an endpoint in order of priority; one without pools."""
    pools = cast(Sequence[InstancePool] | None, options["instance_pools"])
    if pools is None:
        return (cast(InstanceType, options["instance_type"]),)
    return tuple(pool.instance_type for pool in pools)


# Results of the checks of all pools.


def merged_findings(found: Mapping[InstanceType, Iterable[Finding]]) -> tuple[Finding, ...]:
    """Return the findings of all types, one for each place of each check.

    A finding of all types stays as it is. Otherwise its message names the types, in order of
    priority.
    """
    groups: dict[tuple[Any, ...], dict[InstanceType, Finding]] = {}
    for instance_type, findings in found.items():
        for finding in findings:
            place = (finding.code, finding.path, finding.line, finding.column)
            groups.setdefault(place, {})[instance_type] = finding
    return tuple(_merged(group, len(found)) for group in groups.values())


def _merged(group: Mapping[InstanceType, Finding], count: int) -> Finding:
    first = next(iter(group.values()))
    by_message: dict[str, list[str]] = {}
    for instance_type, finding in group.items():
        by_message.setdefault(finding.message, []).append(instance_type.name)
    if len(by_message) == 1 and len(group) == count:
        return first
    parts = [f"on {', '.join(names)}: {message}" for message, names in by_message.items()]
    return replace(first, message="; ".join(parts))


def raise_pool_errors(errors: Mapping[InstanceType, ConstructsTritonError]) -> None:
    """Raise one error that lists those of all instance types; return if there are none."""
    if not errors:
        return
    by_message: dict[str, list[str]] = {}
    for instance_type, error in errors.items():
        by_message.setdefault(str(error), []).append(instance_type.name)
    parts = [
        f"instance_pools, {', '.join(names)}: {message}" for message, names in by_message.items()
    ]
    raise InvalidValueError("\n".join(parts)) from next(iter(errors.values()))


def ami_findings(given: object, versions: Mapping[InstanceType, str | None]) -> Iterator[Finding]:
    """Yield a warning if SageMaker's default AMI was chosen for types whose default drivers may
    differ.

    ``versions`` are the AMIs that each type needs by default, or the one that was chosen.

    Raises:
        InvalidValueError: none was chosen, and the types need different ones.
    """
    families = {instance_type.family for instance_type in versions if instance_type.has_gpu}
    is_one = len(set(versions.values())) == 1
    is_default = None in versions.values()
    # SageMaker's default AMI has another driver for each family.
    if is_one and (not is_default or len(families) < 2):
        return

    if given is FOR_THE_IMAGE:
        needed = ", ".join(
            f"{instance_type}: {version or 'not known'}"
            for instance_type, version in versions.items()
        )
        raise InvalidValueError(
            "inference_ami_version: is required, since all instance_pools use one AMI and their "
            f"defaults differ ({needed}); set it to one that supports all of them, such as "
            '"al2023-ami-sagemaker-inference-gpu-4-1"'
        )
    yield Finding(
        "instance-pools-default-ami",
        Severity.WARNING,
        "inference_ami_version",
        "SageMaker's default AMI has another GPU driver for each family of instance types, got "
        f"{', '.join(sorted(families))}",
        "set inference_ami_version to one AMI, "
        "or acknowledge this if the image works with all drivers",
        source="AWS documentation: GPU drivers of inference instances",
    )


def pool_region_findings(scope: Construct) -> Iterator[Finding]:
    """Yield a warning if AWS did not name the Region of the stack for instance pools."""
    region = Stack.of(scope).region
    if is_token(region) or region in load("instance_pools")["regions"]:
        return
    yield Finding(
        "instance-pools-region",
        Severity.WARNING,
        "instance_pools",
        f"AWS did not list {region} for instance pools when this library was released",
        "use another Region or instance_type, "
        "or acknowledge this if SageMaker accepts them there now",
        source=(
            "aws-samples/sagemaker-genai-hosting-examples, 03-features/capacity-aware-instance-pool"
        ),
    )
