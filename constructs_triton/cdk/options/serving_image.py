"""``ServingImage``: the image of a container that is not Triton."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike

from aws_cdk import aws_ecr as ecr
from constructs import Construct

from constructs_triton.cdk.options.image import (
    ContainerImage,
    TritonImage,
    bind_image,
    image_places,
)
from constructs_triton.cdk.options.image_findings import image_findings
from constructs_triton.cdk.options.inference_ami import ami_of_cuda
from constructs_triton.cdk.permissions.places import Place
from constructs_triton.cdk.validation.arguments import (
    check_known_string,
    check_string,
)
from constructs_triton.cdk.validation.created_objects import CreatedByFunctions
from constructs_triton.cdk.validation.property_types import check_type
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.findings import Finding
from constructs_triton_core.tokens import is_lookup_dummy
from triton_model_check.facts.inference_ami import InferenceAmi

# The account, the Region and the repository of an ECR image; Region and suffix may be tokens.


class ServingImage(CreatedByFunctions):
    """The image of a container that is not Triton, such as AWS's images of vLLM and LMI.

    The container must answer ``/ping`` and ``/invocations`` on port 8080. All components of an
    endpoint share the GPU driver of one inference AMI. So on GPUs, an image needs its
    ``cuda_version``, or the ``inference_ami_version`` that its publisher names. ``ami`` is the AMI
    that follows from it.
    """

    ami: InferenceAmi | None

    _example = 'ServingImage.from_registry("...")'

    @staticmethod
    def from_registry(
        uri: str,
        *,
        cuda_version: str | None = None,
        inference_ami_version: InferenceAmi | str | None = None,
    ) -> ServingImage:
        """An image by its full URI. The execution role may pull it if it is in ECR.

        Args:
            uri: Full URI, such as that of AWS's documentation for the Region of the stack.
            cuda_version: CUDA version of the image, such as ``"13.0"``.
            inference_ami_version: AMI that the image needs, in place of ``cuda_version``.

        Raises:
            InvalidValueError: SageMaker would refuse the URI, or there is no AMI for the CUDA
                version.
        """
        image = TritonImage.from_registry(uri)
        return _ServingImage(_ami(cuda_version, inference_ami_version), image, uri)

    @staticmethod
    def from_ecr_repository(
        repository: ecr.IRepository,
        tag_or_digest: str = "latest",
        *,
        cuda_version: str | None = None,
        inference_ami_version: InferenceAmi | str | None = None,
    ) -> ServingImage:
        """Your own image in ECR.

        Args:
            repository: Repository of the image.
            tag_or_digest: Tag or ``sha256:...`` digest.
            cuda_version: CUDA version of the image, such as ``"13.0"``.
            inference_ami_version: AMI that the image needs, in place of ``cuda_version``.

        Raises:
            InvalidValueError: there is no AMI for the CUDA version.
        """
        image = TritonImage.from_ecr_repository(repository, tag_or_digest)
        uri = repository.repository_uri_for_tag_or_digest(tag_or_digest)
        return _ServingImage(_ami(cuda_version, inference_ami_version), image, uri)

    @staticmethod
    def from_asset(
        directory: str | PathLike[str],
        *,
        cuda_version: str | None = None,
        inference_ami_version: InferenceAmi | str | None = None,
    ) -> ServingImage:
        """An image that ``cdk deploy`` builds from a folder with a ``Dockerfile``.

        Args:
            directory: Folder with the ``Dockerfile``.
            cuda_version: CUDA version of the image, such as ``"13.0"``.
            inference_ami_version: AMI that the image needs, in place of ``cuda_version``.

        Raises:
            InvalidValueError: the folder contains no ``Dockerfile``, or there is no AMI for the
                CUDA version.
        """
        image = TritonImage.from_asset(directory)
        return _ServingImage(_ami(cuda_version, inference_ami_version), image)

    @abstractmethod
    def _bind(self, scope: Construct, instance_type: InstanceType) -> ContainerImage:
        """Return the URI, and the repository if the image is in ECR."""


def bind_serving_image(
    image: ServingImage, scope: Construct, instance_type: InstanceType
) -> ContainerImage:
    """Return the image for instances of a type, below which its assets are created."""
    return image._bind(scope, instance_type)


@dataclass(frozen=True, slots=True)
class _ServingImage(ServingImage):
    ami: InferenceAmi | None
    #: Where the image is, which does not depend on its content.
    image: TritonImage
    #: The URI, if it is known before the image is built.
    uri: str = ""

    def _bind(self, scope: Construct, instance_type: InstanceType) -> ContainerImage:
        return bind_image(self.image, scope, instance_type)


def image_uri(image: ServingImage) -> str:
    """Return the URI of an image, which may contain tokens;
    ``""`` for one that is not built yet.
    """
    return image.uri if isinstance(image, _ServingImage) else ""


def serving_image_places(image: ServingImage) -> Iterator[Place]:
    """Yield where an image is, if it is in ECR."""
    if isinstance(image, _ServingImage):
        yield from image_places(image.image)


def serving_image_findings(image: ServingImage) -> list[Finding]:
    """Return warnings about an image."""
    return image_findings(image.image) if isinstance(image, _ServingImage) else []


def _ami(
    cuda_version: str | None, inference_ami_version: InferenceAmi | str | None
) -> InferenceAmi | None:
    check_type("cuda_version", cuda_version, (str, '"13.0"'))
    if not isinstance(inference_ami_version, InferenceAmi):
        check_string("inference_ami_version", inference_ami_version)
    if cuda_version is not None and not is_lookup_dummy(cuda_version):
        check_known_string("cuda_version", cuda_version, "13.0")
    if cuda_version is None:
        return (
            None if inference_ami_version is None else InferenceAmi.of(str(inference_ami_version))
        )
    if inference_ami_version is not None:
        raise InvalidValueError(
            f'cuda_version: cannot be combined with inference_ami_version, got "{cuda_version}" '
            f'and "{inference_ami_version}"; remove one of them'
        )
    if is_lookup_dummy(cuda_version):
        cuda_version = "13.0"  # the next synthesis has the version
    return ami_of_cuda(cuda_version)
