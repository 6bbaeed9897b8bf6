"""The image, variables and host of a container, and the checks that depend on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from aws_cdk import Size
from constructs import Construct

from constructs_triton.cdk.endpoint.properties import EndpointOptions
from constructs_triton.cdk.endpoint.served_models import ServedModels
from constructs_triton.cdk.options.environment import TritonEnvironment, check_limits, check_variables
from constructs_triton.cdk.options.environment_layers import Environment, EnvironmentLayers, flatten
from constructs_triton.cdk.options.image import TritonImage
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts.compatibility import VariantFacts, check_compatibility
from constructs_triton.facts.environment import variables
from constructs_triton.facts.inference_ami import default_inference_ami, given_ami_version
from constructs_triton.findings import Finding, Severity
from constructs_triton.model_config.target import Target

__all__ = ["ContainerSettings", "check_models", "container_settings"]

_DEFAULT_MODEL = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
_GPU_LOAD_LIMIT = "SAGEMAKER_TRITON_MODEL_LOAD_GPU_LIMIT"
_ADDITIONAL_ARGS = "SAGEMAKER_TRITON_ADDITIONAL_ARGS"
_LOAD_MODEL = "--load-model="
_PREBUILT_ONLY = ("instance-type-arm", "instance-type-accelerator")


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """Image, variables and AMI of a container, and warnings about them."""

    image: TritonImage
    environment: dict[str, str]
    inference_ami_version: str | None
    findings: tuple[Finding, ...]


def container_settings(scope: Construct, models: ServedModels, options: EndpointOptions) -> ContainerSettings:
    """Return the settings of a container.

    Raises:
        InvalidValueError: the image, its Region or SageMaker would refuse a value.
    """
    image = _image(models, options["image"])
    image.check(scope)
    environment, overrides = flatten(_layers(options["environment"]))
    if not image.is_of_package:
        environment = _with_default_model(environment, overrides, models.default_model)
    environment = _with_called_models(environment, overrides, models.called_models)
    multi_model = models.mode == "multi-model"
    rendered = environment.to_variables(image_version=image.version, multi_model=multi_model)
    rendered |= overrides
    if image.is_of_package and not _layers(options["environment"]):
        rendered = {}  # a package may not allow variables
    check_limits(rendered)
    ami, ami_findings = _inference_ami(image, options)
    found = [
        *_compatibility_findings(image, rendered, models, options),
        *_environment_findings(environment, options, image.version, multi_model=multi_model),
        *check_variables(overrides, image_version=image.version, multi_model=multi_model),
        *ami_findings,
    ]
    return ContainerSettings(image, rendered, ami, tuple(_warnings(found)))


def _image(models: ServedModels, given: TritonImage | None) -> TritonImage:
    if not models.repository.is_model_package:
        return given or TritonImage.dlc()
    if given is not None:
        raise InvalidValueError("image: a model package contains its image; remove image")
    return TritonImage.of_model_package()


def check_models(
    models: ServedModels, settings: ContainerSettings, options: EndpointOptions
) -> list[Finding]:
    """Check the models for this endpoint, and return warnings that the repository has not printed yet.

    Raises:
        RepositoryError: Triton would not load the models.
    """
    instance_type = options["instance_type"]
    shm_bytes = settings.environment.get(variables()["shm_default_byte_size"].name, "")
    target = Target(
        mode=models.mode,
        gpu_count=instance_type.gpus,
        gpu_memory_mib=instance_type.gpu_memory_mib,
        memory_gib=instance_type.memory_gib,
        storage_gb=instance_type.local_storage_gb or _known_volume_size_gb(options["volume_size"]),
        image_version=settings.image.version,
        default_model=models.default_model,
        inference_type=settings.environment.get(variables()["inference_type"].name),
        is_prebuilt_image=settings.image.is_prebuilt,
        shm_default_byte_size=int(shm_bytes) if shm_bytes.isdecimal() else None,
        has_response_cache="--cache-config"
        in settings.environment.get(variables()["additional_args"].name, ""),
    )
    known = {(finding.code, finding.path) for finding in models.repository.warnings}
    found = models.check(target)
    return [*settings.findings, *(each for each in found if (each.code, each.path) not in known)]


def _known_volume_size_gb(volume_size: Size | None) -> int | None:
    if volume_size is None or volume_size.is_unresolved():
        return None
    return int(volume_size.to_gibibytes())


def _layers(environment: Environment | None) -> EnvironmentLayers:
    return environment if isinstance(environment, EnvironmentLayers) else EnvironmentLayers.of(environment)


def _environment_findings(
    environment: TritonEnvironment, options: EndpointOptions, version: str | None, *, multi_model: bool
) -> list[Finding]:
    found = environment.check(image_version=version, multi_model=multi_model)
    if _layers(options["environment"]).is_typed:
        return found
    # The variables of a mapping without a keyword were put in ``extra``.
    return [replace(each, path=each.path.replace("environment.extra[", "environment[")) for each in found]


def _with_default_model(
    environment: TritonEnvironment, overrides: Mapping[str, str], default_model: str | None
) -> TritonEnvironment:
    if default_model is None:
        return environment
    given = overrides.get(_DEFAULT_MODEL, environment.default_model_name)
    if given is not None and given != default_model:
        raise InvalidValueError(
            f'environment: {_DEFAULT_MODEL} must be the model of this endpoint, "{default_model}", '
            f'got "{given}"; remove the variable'
        )
    return replace(environment, default_model_name=default_model)


def _with_called_models(
    environment: TritonEnvironment, overrides: dict[str, str], called: Sequence[str]
) -> TritonEnvironment:
    """Load the models that others call at the start of the server."""
    if not called:
        return environment
    given = overrides.pop(_ADDITIONAL_ARGS, "").split()
    loaded = {*environment.additional_models, *(word.removeprefix(_LOAD_MODEL) for word in given)}
    return replace(
        environment,
        additional_models=(
            *environment.additional_models,
            *(name for name in called if name not in loaded),
        ),
        additional_args=(*environment.additional_args, *given),
    )


def _compatibility_findings(
    image: TritonImage, environment: Mapping[str, str], models: ServedModels, options: EndpointOptions
) -> list[Finding]:
    instance_type = options["instance_type"]
    variant = VariantFacts(
        instance_type=instance_type,
        image_version=image.version,
        cpu_image=image.is_cpu_image(instance_type),
        multi_model=models.mode == "multi-model",
        volume_size_gb=_known_volume_size_gb(options["volume_size"]),
        has_gpu_load_limit=_GPU_LOAD_LIMIT in environment,
    )
    found = check_compatibility(variant)
    # Your own image may be built for any processor.
    return [each for each in found if image.is_prebuilt or each.code not in _PREBUILT_ONLY]


def _warnings(findings: Sequence[Finding]) -> list[Finding]:
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        raise InvalidValueError("\n".join(str(error) for error in errors))
    return list(findings)


def _inference_ami(image: TritonImage, options: EndpointOptions) -> tuple[str | None, list[Finding]]:
    if "inference_ami_version" in options:
        return given_ami_version(options["inference_ami_version"]), []
    choice = default_inference_ami(image.version, options["instance_type"])
    return choice.version, [choice.finding] if choice.finding else []
