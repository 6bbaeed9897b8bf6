"""What stops an adoption by AWS's answers alone,
so that nothing has to be downloaded to know it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from constructs_triton_core.cloud_assembly.endpoints import containers_of
from constructs_triton_tools.operations.adopting.findings import Adoption
from constructs_triton_tools.operations.adopting.python_text import Answer, code_of
from constructs_triton_tools.operations.adopting.running_endpoint import RunningEndpoint
from constructs_triton_tools.operations.component_state import specifications_of

#: How the app takes the place of the endpoint.
Switch = Literal["take-over", "import", "new-endpoint"]
#: The members of answers that the app carries over or does not need. All others are problems.
_KNOWN = {
    "endpoint configuration": (
        "AsyncInferenceConfig CreationTime DataCaptureConfig EnableNetworkIsolation "
        "EndpointConfigArn EndpointConfigName ExecutionRoleArn KmsKeyId MetricsConfig "
        "ProductionVariants ShadowProductionVariants VpcConfig"
    ),
    "variant": (
        "CapacityReservationConfig ContainerStartupHealthCheckTimeoutInSeconds CoreDumpConfig "
        "EnableSSMAccess InferenceAmiVersion InitialInstanceCount InitialVariantWeight "
        "InstancePools InstanceType ManagedInstanceScaling ModelDataDownloadTimeoutInSeconds "
        "ModelName RoutingConfig VariantInstanceProvisionTimeoutInSeconds "
        "VariantName VolumeSizeInGB"
    ),
    "model": (
        "Containers CreationTime DeploymentRecommendation EnableNetworkIsolation ExecutionRoleArn "
        "InferenceExecutionConfig ModelArn ModelName PrimaryContainer VpcConfig"
    ),
    "container of model": (
        "ContainerHostname Environment Image ImageConfig Mode ModelDataSource ModelDataUrl "
        "ModelPackageName MultiModelConfig"
    ),
    "inference component": (
        "ComputeResourceRequirements Container DataCacheConfig "
        "ModelName SchedulingConfig StartupParameters"
    ),
}


def obstacles(running: RunningEndpoint, switch: Switch) -> Iterator[tuple[str, str]]:
    """Yield the code and the message of each obstacle."""
    where = f"endpoint {running.name}"
    status = running.endpoint["EndpointStatus"]
    if status != "InService":
        yield (
            "endpoint-status",
            f"{where}: must have status InService, got {status}; wait until its "
            "update has ended, or repair it",
        )
    if running.stack and switch != "new-endpoint":
        yield (
            "stack",
            (
                f"{where}: belongs to CloudFormation stack {running.stack}; change this stack "
                "instead, or use --switch new-endpoint"
            ),
        )
    if any(variant.get("ServerlessConfig") for variant in running.variants):
        yield (
            "serverless-config",
            (
                f"{where}: is serverless, and no construct of this library creates such an "
                "endpoint; leave it as it is, or create an endpoint with instances for the same "
                "model, and adopt that one"
            ),
        )
    for name, model in running.models.items():
        if len(containers_of(model)) > 1:
            yield (
                "containers",
                (
                    f"model {name}: is a serial pipeline of {len(containers_of(model))} "
                    "containers, which no construct of this library creates; make it one ensemble"
                ),
            )
    yield from (
        _of_components(running, switch) if running.hosts_components else _of_variants(running)
    )


def _of_components(running: RunningEndpoint, switch: Switch) -> Iterator[tuple[str, str]]:
    if len(running.variants) > 1:
        yield (
            "variants",
            (
                f"endpoint {running.name}: has inference components on several variants, which no "
                "construct of this library creates; move them to one variant, "
                "and adopt the endpoint then"
            ),
        )
    if switch == "take-over":
        yield (
            "take-over-components",
            (
                f"endpoint {running.name}: hosts inference components, which an update cannot take "
                "over; use --switch new-endpoint, or --switch import, "
                "which creates the components again"
            ),
        )


def _of_variants(running: RunningEndpoint) -> Iterator[tuple[str, str]]:
    for variant in running.variants:
        if not running.container(variant["ModelName"]):
            yield (
                "deleted-model",
                (
                    f"variant {variant['VariantName']}: its model {variant['ModelName']} cannot be "
                    "read; add the permissions of `adopt --policy`, "
                    "or update the endpoint to a model with the same data"
                ),
            )
    containers = [running.container(variant["ModelName"]) for variant in running.variants]
    if len({container.get("Mode", "SingleModel") for container in containers}) > 1:
        yield (
            "mode",
            (
                f"endpoint {running.name}: has variants with one and with many models, which no "
                "construct of this library creates; move one of them to an endpoint of its own"
            ),
        )


def refuse_unknown_members(running: RunningEndpoint, adoption: Adoption) -> None:
    """Note each member that is set and that the app would lose, also one that is new in AWS."""
    for kind, name, answer in _answers(running):
        for member, value in answer.items():
            if member not in _KNOWN[kind].split() and value not in (None, False, "", [], {}):
                where = f"{kind} {name}".strip()
                adoption.refuse(
                    code_of(member),
                    f"{where}: {member} is not carried over; set it by hand in app.py",
                )


def _answers(running: RunningEndpoint) -> Iterator[tuple[str, str, Answer]]:
    yield "endpoint configuration", "", running.config
    for variant in running.variants:
        yield "variant", variant["VariantName"], variant
    for name, model in running.models.items():
        yield "model", name, model
        yield from (("container of model", name, container) for container in containers_of(model))
    for component in running.components:
        name = component["InferenceComponentName"]
        yield from (
            ("inference component", name, specification)
            for specification in specifications_of(component)
        )
