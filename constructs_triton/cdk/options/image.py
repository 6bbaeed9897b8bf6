"""``TritonImage``: the container image of an endpoint."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from aws_cdk import Aws, CfnMapping
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_ecr_assets as ecr_assets
from constructs import Construct

from constructs_triton.cdk.permissions.places import Place
from constructs_triton.cdk.permissions.statements import Statement, allow
from constructs_triton.cdk.validation.arguments import (
    LOOKED_UP_LATER,
    check_known_path,
    check_known_string,
    check_string,
    is_looked_up_path,
)
from constructs_triton.cdk.validation.created_objects import CreatedByFunctions
from constructs_triton.cdk.validation.property_types import check_has
from constructs_triton.cdk.validation.read_once import environment_of, stack_of
from constructs_triton_core.errors import FactNotFoundError, InvalidValueError
from constructs_triton_core.facts import limits
from constructs_triton_core.facts.execution_role import PULL_ACTIONS
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.limit_checks import check_name
from constructs_triton_core.tokens import is_lookup_dummy, is_token
from triton_model_check.facts import images

_TOKEN = r"\$\{Token\[[^\]]+\]\}"
ECR_URI = re.compile(
    rf"(?P<account>\d{{12}}|{_TOKEN})\.dkr\.ecr\.(?P<region>[a-z0-9-]+|{_TOKEN})\."
    rf"(?:amazonaws\.com(?:\.cn)?|{_TOKEN})/(?P<repository>[a-z0-9._/-]+)[:@].+"
)
_REPOSITORY = 'ecr.Repository.from_repository_name(self, "Repository", "...")'
LATEST = "latest"


@dataclass(frozen=True, slots=True)
class ContainerImage:
    """The image of an endpoint: its URI, and its ECR repository if that is known."""

    uri: str
    ecr_repository_arn: str | None = None

    def pull_statements(self) -> list[Statement]:
        """Permissions of the execution role to pull the image."""
        if self.ecr_repository_arn is None:
            return []
        return [
            allow("PullImage", PULL_ACTIONS, [self.ecr_repository_arn]),
            # This action supports no resource.
            allow("LogInToRegistry", ["ecr:GetAuthorizationToken"], ["*"]),
        ]


class TritonImage(CreatedByFunctions):
    """The container image that serves the models. Create it with :meth:`dlc` or a ``from_*``
    function.

    ``triton_version`` is the Triton release in the image, such as ``"26.05"``, or ``None`` if it is
    not known. The checks of the models and the default ``inference_ami_version`` depend on it.
    """

    triton_version: str | None

    _example = 'TritonImage.dlc("26.05")'

    def _given_tag(self) -> str | None:
        """The tag of an image of your own; ``None`` for a digest,
        and for images that the library names.
        """
        return None

    def _given_place(self) -> str:
        """The URI of an image of your own, or the ARN of its repository; ``""`` for others."""
        return ""

    @staticmethod
    def dlc(version: str = images.DEFAULT_VERSION) -> TritonImage:
        """The prebuilt Triton image of AWS. The instance type decides between GPU and CPU image.

        The template of an environment-agnostic stack contains a mapping of all Regions that have
        the version. CloudFormation refuses to deploy it to other Regions ("Unable to get mapping").

        Args:
            version: Version of the image, ``YY.MM``.

        Raises:
            InvalidValueError: the version is a token or does not have the form ``YY.MM``.
            FactNotFoundError: no Region has the version, or, when the endpoint is created, not the
                stack's.
        """
        if is_lookup_dummy(version):
            return DlcImage(images.DEFAULT_VERSION)  # the next synthesis has the version
        if is_token(version):
            raise InvalidValueError(
                "image_version: must be known at synth, got a token; "
                'write TritonImage.dlc("26.05"), or use TritonImage.from_registry'
            )
        check_string("image_version", version)
        images.image_version(version)
        return DlcImage(version)

    @staticmethod
    def from_ecr_repository(
        repository: ecr.IRepository,
        tag_or_digest: str = LATEST,
        *,
        triton_version: str | None = None,
    ) -> TritonImage:
        """Your own image in ECR.

        Args:
            repository: Repository of the image.
            tag_or_digest: Tag or ``sha256:...`` digest. ``latest`` is a warning, because a new
                image under the same tag changes no template.
            triton_version: Version of the Triton image it is built on, ``YY.MM``, for checks.
                Default: not known.
        """
        triton_version = _known_version(triton_version)
        check_has("repository", repository, "repository_arn", _REPOSITORY)
        check_string("tag_or_digest", tag_or_digest)
        return _EcrImage(triton_version, repository, tag_or_digest)

    @staticmethod
    def from_registry(uri: str, *, triton_version: str | None = None) -> TritonImage:
        """An image by its full URI. If that is in ECR, the execution role may pull it.

        Args:
            uri: Full URI, without white space.
            triton_version: Version of the Triton image it is built on, ``YY.MM``, for checks.
                Default: not known.

        Raises:
            InvalidValueError: SageMaker would refuse the URI.
        """
        triton_version = _known_version(triton_version)
        check_name("image", uri, limits.IMAGE)
        return _RegistryImage(triton_version, uri)

    @staticmethod
    def from_asset(
        directory: str | PathLike[str], *, triton_version: str | None = None
    ) -> TritonImage:
        """An image that ``cdk deploy`` builds from a folder with a ``Dockerfile``.

        Args:
            directory: Folder with the ``Dockerfile``.
            triton_version: Version of the Triton image it is built on, ``YY.MM``, for checks.
                Default: not known.

        Raises:
            InvalidValueError: the folder contains no ``Dockerfile``.
        """
        triton_version = _known_version(triton_version)
        check_known_path("directory", directory, "image")
        if is_looked_up_path(directory):
            return TritonImage.from_registry(LOOKED_UP_LATER, triton_version=triton_version)
        if not Path(directory, "Dockerfile").is_file():
            raise InvalidValueError(
                "image: must be a folder with a Dockerfile, "
                f'got "{fspath(directory)}"; add a Dockerfile'
            )
        return _AssetImage(triton_version, fspath(directory))

    @abstractmethod
    def _bind(self, scope: Construct, instance_type: InstanceType) -> ContainerImage:
        """Return the image for an endpoint with instances of a type."""


def check_image(image: TritonImage, scope: Construct) -> None:
    """Check an image before the endpoint is added to the stack of ``scope``.

    Raises:
        InvalidValueError: it is an image of AWS that has another server than Triton.
        FactNotFoundError: the Region has no image of the version.
    """
    other = images.server_of_aws(image._given_place())
    if other is not None:
        raise InvalidValueError(
            f'image: AWS\'s image "{other}" has no Triton; remove image, or serve it with '
            "ContainerInferenceComponent and ServingImage.from_registry"
        )
    if isinstance(image, DlcImage):
        region = environment_of(scope).region
        if not is_token(region):
            images.account(region, image.triton_version)
        else:
            _require_regions(image.triton_version)


def image_places(image: TritonImage) -> Iterator[Place]:
    """Yield where an image of your own is, if it is in ECR."""
    if isinstance(image, _EcrImage):
        yield from Place.of("image", "image", image.repository, image.repository.repository_arn)
    elif isinstance(image, _RegistryImage) and (found := ECR_URI.match(image.uri)):
        yield Place("image", "image", found["region"], found["account"], image.uri)


def _require_regions(version: str) -> None:
    """Check that the Regions of a version are known.

    Raises:
        FactNotFoundError: AWS has not published the version, or does not list its Regions.
    """
    image = images.image_version(version)
    if images.regions(version):
        return

    reason = "AWS publishes no Triton image of this release"
    if image.is_published:
        reason = "AWS released it but does not list its Regions"
    raise FactNotFoundError(
        f'image_version: {reason}, got "{version}"; '
        f'use "{images.DEFAULT_VERSION}", or your own image'
    )


def is_cpu_image(image: TritonImage, instance_type: InstanceType) -> bool | None:
    """Whether an image has no CUDA on instances of a type; ``None`` if that is not known."""
    if not isinstance(image, DlcImage):
        return None
    # If the instance type is a token, the GPU image is used, which also starts without a GPU.
    return not is_token(instance_type.name) and not instance_type.has_gpu


def bind_image(image: TritonImage, scope: Construct, instance_type: InstanceType) -> ContainerImage:
    """Return the image for an endpoint with instances of a type,
    below which its assets are created.
    """
    return image._bind(scope, instance_type)


@dataclass(frozen=True, slots=True)
class DlcImage(TritonImage):
    """A prebuilt image of AWS."""

    triton_version: str

    def _bind(self, scope: Construct, instance_type: InstanceType) -> ContainerImage:
        region = environment_of(scope).region
        if is_token(region):
            account = _account_mapping(scope, self.triton_version)
            suffix = Aws.URL_SUFFIX
        else:
            account = images.account(region, self.triton_version)
            suffix = images.dns_suffix(region)

        name = images.repository_name()
        has_no_cuda = is_cpu_image(self, instance_type) is True
        tag = images.image_version(self.triton_version).tag(cpu=has_no_cuda)
        return ContainerImage(
            uri=f"{account}.dkr.ecr.{region}.{suffix}/{name}:{tag}",
            ecr_repository_arn=f"arn:{Aws.PARTITION}:ecr:{region}:{account}:repository/{name}",
        )


@dataclass(frozen=True, slots=True)
class _EcrImage(TritonImage):
    """Your own image in a repository of ECR that the CDK knows."""

    triton_version: str | None
    repository: ecr.IRepository
    tag_or_digest: str

    def _bind(self, scope: Construct, instance_type: InstanceType) -> ContainerImage:  # noqa: ARG002
        uri = self.repository.repository_uri_for_tag_or_digest(self.tag_or_digest)
        return ContainerImage(uri, self.repository.repository_arn)

    def _given_place(self) -> str:
        return self.repository.repository_arn

    def _given_tag(self) -> str | None:
        if self.tag_or_digest.startswith("sha256:"):
            return None
        return self.tag_or_digest


@dataclass(frozen=True, slots=True)
class _RegistryImage(TritonImage):
    """Your own image by its URI, in ECR or another registry."""

    triton_version: str | None
    uri: str

    def _bind(self, scope: Construct, instance_type: InstanceType) -> ContainerImage:  # noqa: ARG002
        in_ecr = ECR_URI.fullmatch(self.uri)
        if in_ecr is None:
            return ContainerImage(self.uri)
        place = f"{in_ecr['region']}:{in_ecr['account']}:repository/{in_ecr['repository']}"
        return ContainerImage(self.uri, f"arn:{Aws.PARTITION}:ecr:{place}")

    def _given_place(self) -> str:
        return self.uri

    def _given_tag(self) -> str | None:
        _, _, name_and_tag = self.uri.rpartition("/")
        has_digest = "@" in name_and_tag
        if has_digest or is_token(self.uri):
            return None
        _, _, tag = name_and_tag.partition(":")
        return tag or LATEST


@dataclass(frozen=True, slots=True)
class _AssetImage(TritonImage):
    """An image that ``cdk deploy`` builds from a folder."""

    triton_version: str | None
    directory: str

    def _bind(self, scope: Construct, instance_type: InstanceType) -> ContainerImage:
        # Built for the processor of the instance, not for that of this machine.
        is_arm = instance_type.architecture == "arm64"
        platform = ecr_assets.Platform.LINUX_ARM64 if is_arm else ecr_assets.Platform.LINUX_AMD64
        asset = ecr_assets.DockerImageAsset(
            scope, "Image", directory=self.directory, platform=platform
        )
        return ContainerImage(asset.image_uri, asset.repository.repository_arn)


@dataclass(frozen=True, slots=True)
class PackageImage(TritonImage):
    """The image of a model package, which ``ModelSource.from_model_package`` uses."""

    triton_version: str | None = None

    def _bind(self, scope: Construct, instance_type: InstanceType) -> ContainerImage:  # noqa: ARG002
        return ContainerImage("")


def _known_version(version: str | None) -> str | None:
    """Check a version; ``None`` for one that the CDK has not looked up yet."""
    if version is None or is_lookup_dummy(version):
        return None
    check_known_string("triton_version", version, images.DEFAULT_VERSION)
    images.image_version(version)
    return version


def _account_mapping(scope: Construct, version: str) -> str:
    """Return the account by ``AWS::Region``, from one mapping per stack and version."""
    stack = stack_of(scope)
    mapping_id = f"TritonImageAccounts{version.replace('.', '')}"
    mapping = stack.node.try_find_child(mapping_id)
    if not isinstance(mapping, CfnMapping):
        rows = {
            region: {"account": images.account(region, version)}
            for region in images.regions(version)
        }
        mapping = CfnMapping(stack, mapping_id, mapping=rows)
    return mapping.find_in_map(Aws.REGION, "account")  # CloudFormation looks it up when it deploys
