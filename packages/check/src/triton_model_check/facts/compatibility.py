"""Checks that the instance type, image, mode and volume of a variant are compatible.

Each rule is a function that returns a problem or ``None``; ``RULES`` has them with their stable
codes. No rule applies to values that are not known: an unknown instance type, your own image, a CDK
token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.tokens import is_token
from triton_model_check.facts.images import ImageVersion, image_version, published_versions

__all__ = ["RULES", "VariantFacts", "check_compatibility"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantFacts:
    """What is known about one production variant at synth.

    ``image_version`` is ``None`` if the Triton release of the image is not known. ``cpu_image`` is
    ``None`` if it is not known whether the image is built for GPUs. ``volume_size_gb`` is the
    requested EBS volume.
    """

    instance_type: InstanceType
    image_version: str | None = None
    cpu_image: bool | None = None
    multi_model: bool = False
    volume_size_gb: int | None = None
    has_gpu_load_limit: bool = False

    @property
    def image(self) -> ImageVersion | None:
        """The facts about the image, if its release is known."""
        if self.image_version is None or is_token(self.image_version):
            return None
        return image_version(self.image_version)


Problem = tuple[str, str]
"""What is wrong, with the value, and how to fix it."""
_Find = Callable[[VariantFacts], Problem | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its code, severity, property, summary and source,
    and the function that checks it.
    """

    code: str
    severity: Severity
    path: str
    summary: str
    source: str
    find_problem: _Find

    def check(self, variant: VariantFacts) -> Finding | None:
        """Return the finding, or ``None`` if the variant follows the rule."""
        problem = self.find_problem(variant)
        if problem is None:
            return None
        return Finding(self.code, self.severity, self.path, *problem, source=self.source)


RULES: list[Rule] = []
"""Every rule, in the order in which they are checked."""
_ACCELERATORS = {"inf": "AWS Inferentia", "trn": "AWS Trainium", "dl1": "Intel Gaudi"}
_ERROR, _WARNING = Severity.ERROR, Severity.WARNING
_NOTES = "NVIDIA Triton release notes: GPU requirements"
_CPU_BUILD = "NVIDIA Triton documentation: CPU-only builds"


def _rule(code: str, severity: Severity, path: str, source: str) -> Callable[[_Find], _Find]:
    """Add a function to the rules; its docstring is the summary."""

    def add(find: _Find) -> _Find:
        RULES.append(Rule(code, severity, path, find.__doc__ or "", source, find))
        return find

    return add


def check_compatibility(variant: VariantFacts) -> list[Finding]:
    """Return all findings, in the order of ``RULES``."""
    return [finding for rule in RULES if (finding := rule.check(variant)) is not None]


@_rule(
    "instance-type-unknown",
    _WARNING,
    "instance_type",
    "botocore sagemaker service model: ProductionVariantInstanceType",
)
def _unknown_type(variant: VariantFacts) -> Problem | None:
    """the instance type is known to this library"""
    instance = variant.instance_type
    if instance.is_known or is_token(instance.name):
        return None
    assumed = "to have NVIDIA GPUs" if instance.has_gpu else "to have no GPUs"
    hint = instance.nearest_known or "acknowledge this if the type is newer than this library"
    return f'unknown instance type, which is assumed {assumed}, got "{instance}"', hint


@_rule(
    "instance-type-arm",
    _ERROR,
    "instance_type",
    "aws/deep-learning-containers release_images_inference.yml: arch_type x86",
)
def _arm(variant: VariantFacts) -> Problem | None:
    """the instance type is x86_64, like all images"""
    if variant.instance_type.architecture != "arm64":
        return None
    return (
        (
            "AWS builds its Triton images for x86_64 only, "
            f'got "{variant.instance_type}", which is arm64'
        ),
        "use an x86_64 type, such as ml.g5 or ml.c7i",
    )


@_rule(
    "instance-type-accelerator",
    _ERROR,
    "instance_type",
    "aws/deep-learning-containers release_images_inference.yml: device_types cpu and gpu",
)
def _accelerator(variant: VariantFacts) -> Problem | None:
    """the instance type has no accelerator that the images do not support"""
    name = variant.instance_type.name
    if is_token(name):
        return None
    family = name.split(".")[1]
    accelerator = next(
        (what for prefix, what in _ACCELERATORS.items() if family.startswith(prefix)), None
    )
    if accelerator is None:
        return None
    return (
        (
            "AWS builds its Triton images for CPUs and NVIDIA GPUs only, "
            f'got "{name}", which has {accelerator}'
        ),
        (
            "use a type with NVIDIA GPUs, such as ml.g5, or your own image with "
            "TritonImage.from_ecr_repository"
        ),
    )


@_rule("gpu-older-than-image", _ERROR, "instance_type", _NOTES)
def _gpu_too_old(variant: VariantFacts) -> Problem | None:
    """the GPU has the compute capability that the release requires"""
    image = variant.image
    capability = variant.instance_type.compute_capability
    if image is None or capability is None or variant.cpu_image:
        return None
    if _numbers(capability) >= _numbers(image.min_compute_capability):
        return None
    return (
        (
            f"Triton {image.version} needs GPUs of compute capability "
            f'{image.min_compute_capability} or newer, got "{variant.instance_type}" '
            f"({variant.instance_type.gpu_model}, {capability})"
        ),
        _older_image(capability),
    )


def _older_image(capability: str) -> str:
    for version in published_versions():
        if _numbers(image_version(version).min_compute_capability) <= _numbers(capability):
            return f"use a newer GPU, or image {version}"
    return "use a newer GPU"


@_rule("gpu-newer-than-image", _WARNING, "instance_type", _NOTES)
def _gpu_too_new(variant: VariantFacts) -> Problem | None:
    """the release supports the GPU architecture"""
    image = variant.image
    capability = variant.instance_type.compute_capability
    if image is None or capability is None or variant.cpu_image:
        return None
    if _numbers(capability)[0] <= image.newest_compute_capability_major:
        return None
    return (
        f"the GPU architecture is newer than Triton {image.version}, "
        f'got "{variant.instance_type}" ({variant.instance_type.gpu_model}, {capability})',
        "use a newer image",
    )


@_rule("cpu-image-on-gpu-instance", _WARNING, "image", _CPU_BUILD)
def _cpu_image_on_gpu(variant: VariantFacts) -> Problem | None:
    """an instance with GPUs runs the image for GPUs"""
    if variant.cpu_image is not True or not variant.instance_type.has_gpu:
        return None
    return (
        f'the image for CPUs does not use the GPUs, got "{variant.instance_type}"',
        "use the image for GPUs, or an instance type without GPUs",
    )


@_rule("gpu-image-on-cpu-instance", _WARNING, "image", _CPU_BUILD)
def _gpu_image_on_cpu(variant: VariantFacts) -> Problem | None:
    """an instance without GPUs runs the image for CPUs"""
    if variant.cpu_image is not False or _may_have_gpu(variant.instance_type):
        return None
    return (
        f'the image for GPUs needs an instance with GPUs, got "{variant.instance_type}"',
        "use the image for CPUs, or an instance type with GPUs",
    )


@_rule(
    "gpu-limit-on-cpu-instance",
    _WARNING,
    "environment.model_load_gpu_limit",
    "triton server docker/sagemaker/serve",
)
def _gpu_limit_on_cpu(variant: VariantFacts) -> Problem | None:
    """a limit of GPU memory is set only for instances with GPUs"""
    if not variant.has_gpu_load_limit or _may_have_gpu(variant.instance_type):
        return None
    return f'the instance has no GPU to limit, got "{variant.instance_type}"', "remove it"


@_rule(
    "multi-model-gpu-undocumented",
    _WARNING,
    "instance_type",
    "AWS documentation: supported instance types for multi-model endpoints",
)
def _multi_model_gpu(variant: VariantFacts) -> Problem | None:
    """a multi-model endpoint on GPUs uses a type that AWS lists for it"""
    instance = variant.instance_type
    if not variant.multi_model or not instance.has_gpu or instance.multi_model_gpu_documented:
        return None
    return (
        f'AWS does not list this type for multi-model endpoints on GPUs, got "{instance}"',
        "use a g4dn or g5 type with a single GPU, or acknowledge this warning",
    )


@_rule(
    "volume-size-on-nvme",
    _ERROR,
    "volume_size",
    "SageMaker: 'VolumeSize parameter is not allowed for the selected Instance type'",
)
def _volume_size(variant: VariantFacts) -> Problem | None:
    """a type with local NVMe has no volume size"""
    instance = variant.instance_type
    if variant.volume_size_gb is None or instance.supports_volume_size is not False:
        return None
    return (
        (
            f'"{instance}" has {instance.local_storage_gb} GB of local NVMe and does not support a '
            f"volume size, got {_shown(variant.volume_size_gb)}"
        ),
        "remove it",
    )


def _may_have_gpu(instance: InstanceType) -> bool:
    return instance.has_gpu or is_token(instance.name)


def _numbers(capability: str) -> tuple[int, ...]:
    return tuple(int(part) for part in capability.split("."))


def _shown(volume_size_gb: int) -> str:
    return "a value known at deployment" if is_token(volume_size_gb) else f"{volume_size_gb} GB"
