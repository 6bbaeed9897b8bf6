"""The container of a variant or of a component: image, variables and AMI,
settled once and checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from aws_cdk import Size
from constructs import Construct

from constructs_triton.cdk.endpoint.served_models import ServedModels
from constructs_triton.cdk.options.environment_layers import Environment, settle_environment
from constructs_triton.cdk.options.image import (
    DlcImage,
    PackageImage,
    TritonImage,
    check_image,
    image_places,
    is_cpu_image,
)
from constructs_triton.cdk.options.image_findings import image_findings
from constructs_triton.cdk.options.inference_ami import (
    FOR_THE_IMAGE,
    cuda_mismatch,
    given_ami_version,
)
from constructs_triton.cdk.options.secret_variables import secret_findings
from constructs_triton.cdk.permissions.places import check_places
from constructs_triton.cdk.repository.loaded_models import PackagedModel
from constructs_triton.cdk.repository.properties import CompressionType
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.facts.marketplace import is_of_marketplace
from constructs_triton_core.findings import Finding, Severity
from triton_model_check.facts.compatibility import VariantFacts, check_compatibility
from triton_model_check.facts.environment import variables
from triton_model_check.facts.inference_ami import InferenceAmi, default_inference_ami
from triton_model_check.model_config.target import Target

_GPU_LOAD_LIMIT = "SAGEMAKER_TRITON_MODEL_LOAD_GPU_LIMIT"
_CONFIG_NAME = re.compile(r"(?:^|\s)--model-config-name[=\s](\S+)")
_PREBUILT_ONLY = ("instance-type-arm", "instance-type-accelerator")


@dataclass(frozen=True, slots=True)
class SettledContainer:
    """A container with everything that its properties, its models and its instance type decide.

    ``instance_type`` has the GPUs that the container may use. ``inference_ami_version`` is ``None``
    for SageMaker's default. ``target`` is what the models were checked for. ``findings`` are
    warnings about all of this.
    """

    models: ServedModels
    instance_type: InstanceType
    image: TritonImage
    environment: Mapping[str, str]
    inference_ami_version: str | None
    target: Target
    findings: tuple[Finding, ...] = ()


def settle_container(
    scope: Construct,
    models: ServedModels,
    instance_type: InstanceType,
    *,
    image: TritonImage | None,
    environment: Environment | None,
    volume_size: Size | None = None,
    inference_ami_version: InferenceAmi | str | None = FOR_THE_IMAGE,
    enable_network_isolation: bool | None = None,
    shared_with: Sequence[InstanceType] = (),
    max_memory_mib: float | None = None,
) -> SettledContainer:
    """Return a container in the stack of ``scope``, checked together with its models.

    ``max_memory_mib`` is what the container may use of the main memory. ``shared_with`` are the
    instance types of all pools that load the same models.

    Raises:
        InvalidValueError: the image, its Region or SageMaker would refuse a value.
        RepositoryError: Triton would not load the models.
    """
    models.check_scope(scope)
    chosen = _image(models, image)
    check_image(chosen, scope)

    other_places = check_places(scope, [*models.places(), *image_places(chosen)])
    rendered, variable_findings = _variables(scope, models, chosen, environment)
    ami, ami_findings = _inference_ami(chosen, instance_type, inference_ami_version)
    volume_gb = _known_gibibytes(volume_size)
    facts = VariantFacts(
        instance_type=instance_type,
        image_version=chosen.triton_version,
        cpu_image=is_cpu_image(chosen, instance_type),
        multi_model=models.serves_many,
        volume_size_gb=volume_gb,
        has_gpu_load_limit=_GPU_LOAD_LIMIT in rendered,
    )
    warnings = _warnings(
        [
            *_compatibility_findings(chosen, facts),
            *variable_findings,
            *other_places,
            *image_findings(chosen),
            *_marketplace_findings(models, enable_network_isolation),
            *ami_findings,
        ]
    )

    gpus_of_pools = ((pool.gpu_model, pool.compute_capability) for pool in shared_with)
    target = replace(
        _target(models, instance_type, chosen, rendered, volume_gb),
        has_network_isolation=enable_network_isolation,
        max_memory_mib=max_memory_mib,
        gpus=tuple(dict.fromkeys(gpus_of_pools)),
    )
    warnings += _new_warnings(models, target)
    return SettledContainer(models, instance_type, chosen, rendered, ami, target, tuple(warnings))


def _new_warnings(models: ServedModels, target: Target) -> list[Finding]:
    """Return the warnings about the models for a target, without those of every target.

    The repository has reported the latter.
    """
    reported = {(finding.code, finding.path) for finding in models.contents.warnings}
    found = models.check(target)
    return [finding for finding in found if (finding.code, finding.path) not in reported]


def _image(models: ServedModels, given: TritonImage | None) -> TritonImage:
    """Return the given image, or the default; a model package has its own."""
    if not models.contents.is_model_package:
        return given or TritonImage.dlc()
    if given is not None:
        raise InvalidValueError("image: a model package contains its image; remove image")
    return PackageImage()


def _marketplace_findings(
    models: ServedModels, enable_network_isolation: bool | None
) -> list[Finding]:
    """Return a warning if a model of AWS Marketplace has network access."""
    if enable_network_isolation:
        return []
    source = models.contents.catalog.source
    if not isinstance(source, PackagedModel) or not is_of_marketplace(source.model_package_name):
        return []
    return [
        Finding(
            "marketplace-network-isolation",
            Severity.WARNING,
            "enable_network_isolation",
            "models of AWS Marketplace need network isolation",
            "set enable_network_isolation=True",
            source="SageMaker developer guide: mkt-algo-model-internet-free",
        )
    ]


def _variables(
    scope: Construct, models: ServedModels, image: TritonImage, given: Environment | None
) -> tuple[dict[str, str], list[Finding]]:
    """Return the variables of the container, and what is wrong with them."""
    is_package = isinstance(image, PackageImage)
    rendered, found = settle_environment(
        given,
        image_version=image.triton_version,
        multi_model=models.serves_many,
        default_model=None if is_package else models.default_model,
        called_models=models.called_models,
        packed_models=models.packed_models,
    )
    found += secret_findings(scope, rendered)
    if is_package and given is None:  # a package may not allow variables
        rendered = {}
    return rendered, found


def _inference_ami(
    image: TritonImage, instance_type: InstanceType, given: InferenceAmi | str | None
) -> tuple[str | None, list[Finding]]:
    """Return the version of the AMI, and what is wrong with it."""
    if given is not FOR_THE_IMAGE:
        version = given_ami_version(given)
        mismatch = cuda_mismatch(version, image.triton_version, instance_type)
        return version, [] if mismatch is None else [mismatch]
    choice = default_inference_ami(image.triton_version, instance_type)
    return choice.version, [choice.finding] if choice.finding else []


def _target(
    models: ServedModels,
    instance_type: InstanceType,
    image: TritonImage,
    environment: Mapping[str, str],
    volume_gb: int | None,
) -> Target:
    """Return what the models are checked for."""
    names = variables()
    shm_bytes = environment.get(names["shm_default_byte_size"].name, "")
    shm_growth = environment.get(names["shm_growth_byte_size"].name, "")
    load_limit = environment.get(_GPU_LOAD_LIMIT, "")
    arguments = environment.get(names["additional_args"].name, "")
    return Target(
        platform="sagemaker-multi-model" if models.serves_many else "sagemaker",
        gpu_count=instance_type.gpus,
        gpu_memory_mib=instance_type.gpu_memory_mib,
        gpu_model=instance_type.gpu_model,
        compute_capability=instance_type.compute_capability,
        memory_gib=instance_type.memory_gib,
        storage_gb=instance_type.local_storage_gb or volume_gb,
        image_version=image.triton_version,
        default_model=models.default_model,
        inference_type=environment.get(names["inference_type"].name),
        is_prebuilt_image=isinstance(image, DlcImage),
        model_load_gpu_limit=_fraction(load_limit),
        shm_default_byte_size=int(shm_bytes) if shm_bytes.isdecimal() else None,
        shm_growth_byte_size=int(shm_growth) if shm_growth.isdecimal() else None,
        has_orchestrator=environment.get("TRTLLM_ORCHESTRATOR") == "1",
        is_uncompressed=models.compression_type is CompressionType.NONE,
        python_path=environment.get("PYTHONPATH"),
        has_response_cache="--cache-config" in arguments,
        server_arguments=arguments,
        model_config_name=_config_name(arguments),
    )


def _config_name(arguments: str) -> str | None:
    """Return the name of the configurations in ``configs`` that the server is started with."""
    found = _CONFIG_NAME.search(arguments)
    return None if found is None else found[1]


def _fraction(text: str) -> float | None:
    """Return a part from 0 to 1; ``None`` for a token, or what the server would refuse."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if 0 <= found <= 1 else None


def _known_gibibytes(volume_size: Size | None) -> int | None:
    if volume_size is None or volume_size.is_unresolved():
        return None
    return int(volume_size.to_gibibytes())


def _compatibility_findings(image: TritonImage, facts: VariantFacts) -> list[Finding]:
    """Return what the instance type and the image contradict."""
    findings = check_compatibility(facts)
    if isinstance(image, DlcImage):
        return list(findings)
    # Your own image may be built for any processor.
    return [finding for finding in findings if finding.code not in _PREBUILT_ONLY]


def _warnings(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings if they are warnings only.

    Raises:
        InvalidValueError: there are errors; the message has all of them.
    """
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        raise InvalidValueError("\n".join(str(error) for error in errors))
    return list(findings)
