"""Checks with the execution role what an instance needs to start: model data, image,
network interfaces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from constructs_triton_core.facts.execution_role import NETWORK_ACTIONS, PULL_ACTIONS

from ..errors import StackError
from ..existing import (
    is_assumed_bucket,
    is_assumed_role,
    is_deleted_repository,
    is_placed,
    may_be_filled_outside,
)
from ..moto_account.backends import vpcs_of_groups, vpcs_of_subnets
from ..moto_account.refusals import NoSuchRoleError
from ..services.service_api import ServiceApi
from .access import Access
from .s3_needs import services_of_s3

_IMAGE = re.compile(r"(\d{12})\.dkr\.ecr\.([^.]+)\.amazonaws\.com/([^:@]+)[:@].+")
_PLACED = "rehearsed.tar.gz"
"""An object that a function which does not run would place."""


@dataclass(frozen=True)
class Need:
    """An object in S3, an image or the network that an instance uses, and the check that it can."""

    object: str
    expect: Callable[[], None]
    """Raises ``PermissionError`` if the role may not use it."""

    def refusal(self) -> str:
        """Why it cannot be used; empty if it can."""
        try:
            self.expect()
        except PermissionError as error:
            return str(error)
        return ""


@dataclass
class ExecutionRoleCheck:
    """Asks the deployed policies as they are at this moment."""

    api: ServiceApi
    access: Access
    knows_models: bool = True
    """Whether the models exist in S3; of a template alone they do not,
    and nothing is said of readers.
    """

    def expect_model_data(self, model: Mapping[str, Any]) -> None:
        """Raise ``PermissionError`` if the role may not read the data of a container."""
        for need in self._data_needs(model):
            need.expect()

    def needs_at_start(self, model: Mapping[str, Any]) -> Iterator[Need]:
        """What an instance needs to start: a network,
        and the data and the image of each container.
        """
        role = model["ExecutionRoleArn"]
        yield from self._data_needs(model)

        network = model.get("VpcConfig")
        if network and self._known_containers(model):
            subnets = ", ".join(network["Subnets"])
            expect = partial(self._expect_network, role, network)
            yield Need(f"network interfaces in {subnets}", expect)

        for container in self._known_containers(model):
            image = container.get("Image")
            if image:
                yield Need(image, partial(self._expect_image, role, image))

    def archive_needs(self, model: Mapping[str, Any]) -> Iterator[Need]:
        """The archives of multi-model containers,
        which SageMaker reads when a request names them.
        """
        role = model["ExecutionRoleArn"]
        for container in self._known_containers(model):
            if not _is_multi_model(container):
                continue
            bucket, prefix = _split(container["ModelDataUrl"])
            for key in self._keys(bucket, prefix):
                is_in_a_folder = "/" in key.removeprefix(prefix)
                if key.endswith(".tar.gz") and not is_in_a_folder:
                    yield self._data_need(role, bucket, key, is_prefix=False)

    def _data_needs(self, model: Mapping[str, Any]) -> Iterator[Need]:
        """Yield the permissions that reading the files of a model needs."""
        role = model["ExecutionRoleArn"]
        for container in self._known_containers(model):
            if "ModelDataUrl" in container:
                bucket, key = _split(container["ModelDataUrl"])
                yield self._data_need(role, bucket, key, is_prefix=_is_multi_model(container))
            elif "ModelDataSource" in container:
                yield from self._file_needs(role, container["ModelDataSource"]["S3DataSource"])

    def _known_containers(self, model: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The containers of which something is known.

        There are none for a role outside the stacks: its policies are not known, so that it may do
        everything.
        """
        if not self.knows_models or is_assumed_role(self.api, model["ExecutionRoleArn"]):
            return []
        return [*(model.get("Containers") or ()), model.get("PrimaryContainer") or {}]

    def _data_need(self, role: str, bucket: str, key: str, *, is_prefix: bool) -> Need:
        expect = partial(self._expect_data, role, bucket, key, is_prefix=is_prefix)
        return Need(f"s3://{bucket}/{key}", expect)

    def _file_needs(self, role: str, source: Mapping[str, str]) -> Iterator[Need]:
        """SageMaker lists the prefix, and each key without the prefix is the path of a file."""
        bucket, prefix = _split(source["S3Uri"])
        yield Need(source["S3Uri"], partial(self._expect_files, role, source))
        for key in self._keys(bucket, prefix):
            yield self._data_need(role, bucket, key, is_prefix=False)

    def _keys(self, bucket: str, prefix: str) -> list[str]:
        """The keys that begin with a prefix, among them one that a function would place."""
        found = self.access.s3_needs.bucket(bucket)
        if found is not None:
            keys = [key for key in found.keys if key.startswith(prefix)]
            if keys:
                return keys
        if is_placed(self.api, bucket, prefix):
            return [f"{prefix}{_PLACED}"]
        return []

    def _expect_image(self, role: str, image: str) -> None:
        """Raise ``PermissionError`` if a role cannot pull an image."""
        if image in self.api.behaviour.deleted_images:
            raise PermissionError(f"Requested image {image} not found.")
        in_ecr = _IMAGE.fullmatch(image)
        if in_ecr and is_deleted_repository(self.api, *in_ecr.groups()):
            raise PermissionError(
                f"Requested image {image} not found: its repository does not exist."
            )

        for action, resource in _pull_needs(image):
            if not self.access.allows(role, action, resource, {}):
                raise PermissionError(f"Could not access image {image}: {action} is not allowed")

    def _expect_network(self, role: str, network: Mapping[str, list[str]]) -> None:
        """Raise ``PermissionError`` unless an instance may attach to a network."""
        self._expect_one_vpc(network)
        for action, resource in self._network_needs(network):
            if not self.access.allows(role, action, resource, {}):
                subnets = ", ".join(network["Subnets"])
                raise PermissionError(f"Could not attach to {subnets}: {action} is not allowed")

    def _expect_one_vpc(self, network: Mapping[str, list[str]]) -> None:
        """Raise ``PermissionError`` if groups and subnets differ in VPC."""
        ec2 = self.api.backend("ec2")
        vpcs = vpcs_of_subnets(ec2, network["Subnets"])
        for group, vpc in vpcs_of_groups(ec2, network["SecurityGroupIds"]).items():
            if vpcs and vpc not in vpcs:
                raise PermissionError(
                    f"Security group {group} and the subnets are of different VPCs"
                )

    def _network_needs(self, network: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
        """Each action with each resource that it supports.

        Source: Service Authorization Reference, Amazon EC2. CreateNetworkInterface needs its
        subnet and its security groups beside the interface; Describe actions have no resource.
        """
        prefix = f"arn:aws:ec2:{self.api.region}:{self.api.account}:"
        for action in NETWORK_ACTIONS:
            is_description = ":Describe" in action
            yield action, "*" if is_description else f"{prefix}network-interface/eni-0"
        for subnet in network["Subnets"]:
            yield "ec2:CreateNetworkInterface", f"{prefix}subnet/{subnet}"
        for group in network["SecurityGroupIds"]:
            yield "ec2:CreateNetworkInterface", f"{prefix}security-group/{group}"

    def as_sagemaker(self) -> dict[str, Any]:
        """What assumes an execution role: SageMaker, for this account's resources."""
        source = f"arn:aws:sagemaker:{self.api.region}:{self.api.account}:model/*"
        context = {"aws:SourceAccount": self.api.account, "aws:SourceArn": source}
        return {"service": "sagemaker.amazonaws.com", "context": context}

    def _expect_data(self, role_arn: str, bucket: str, key: str, *, is_prefix: bool) -> None:
        """Raise ``PermissionError`` unless SageMaker can read an object, or list a prefix."""
        url = f"s3://{bucket}/{key}"
        self._expect_trust(role_arn)

        exists = self.access.s3_needs.bucket(bucket) is not None
        if not exists and not is_assumed_bucket(self.api, bucket):
            raise PermissionError(f"Could not access model data at {url}: NoSuchBucket")

        if is_prefix:
            arn = f"arn:aws:s3:::{bucket}"
            self._expect(role_arn, "s3:ListBucket", arn, url, {"s3:prefix": key})
            return

        arn = f"arn:aws:s3:::{bucket}/{key}"
        self._expect(role_arn, "s3:GetObject", arn, url, {})
        encryption_key = self._encryption_key(bucket, key)
        if encryption_key is None:
            return
        for service in services_of_s3(self.api.region):
            context = {"kms:ViaService": service}
            self._expect(role_arn, "kms:Decrypt", encryption_key, url, context)

    def _expect_trust(self, role_arn: str) -> None:
        """Raise ``PermissionError`` if SageMaker may not assume a role."""
        try:
            self.access.expect_trust(role_arn, **self.as_sagemaker())
        except (StackError, NoSuchRoleError) as error:
            raise PermissionError(f"Could not assume role {role_arn}: {error}") from None

    def _encryption_key(self, bucket: str, key: str) -> str | None:
        """The ARN of the KMS key of an object.

        An object that others may have placed has the default key of its bucket. Raises
        ``PermissionError`` if there is none.
        """
        arn = f"arn:aws:s3:::{bucket}/{key}"
        s3 = self.access.s3_needs
        if s3.object(arn) is not None or is_assumed_bucket(self.api, bucket):
            return s3.key_of(arn)
        if is_placed(self.api, bucket, key) or may_be_filled_outside(self.api, bucket):
            return s3.default_key(bucket)
        raise PermissionError(f"Could not access model data at s3://{bucket}/{key}: 404")

    def _expect_files(self, role_arn: str, source: Mapping[str, str]) -> None:
        """Raise ``PermissionError`` unless SageMaker can list the files of an uncompressed model.

        A key that ends with a slash cannot be a file.
        """
        url = source["S3Uri"]
        bucket, prefix = _split(url)
        is_prefix_of_files = (
            source["S3DataType"] == "S3Prefix"
            and source["CompressionType"] == "None"
            and prefix.endswith("/")
        )
        if not is_prefix_of_files:
            raise PermissionError(f"Could not access model data at {url}: not a prefix of files")
        self._expect_data(role_arn, bucket, prefix, is_prefix=True)

        keys = self._keys(bucket, prefix)
        is_unknown = is_assumed_bucket(self.api, bucket) or may_be_filled_outside(self.api, bucket)
        if not keys and is_unknown:
            return
        if not keys or any(key.endswith("/") for key in keys):
            raise PermissionError(f"Could not access model data at {url}: {len(keys)} objects")

    def _expect(
        self, role_arn: str, action: str, resource: str, url: str, context: Mapping[str, str]
    ) -> None:
        if not self.access.allows(role_arn, action, resource, context):
            raise PermissionError(f"Could not access model data at {url}: 403")


def _is_multi_model(container: Mapping[str, Any]) -> bool:
    return container.get("Mode") == "MultiModel" and "ModelDataUrl" in container


def _split(url: str) -> tuple[str, str]:
    bucket, _, key = url.removeprefix("s3://").partition("/")
    return bucket, key


def _pull_needs(image: str) -> Iterator[tuple[str, str]]:
    """The permissions to pull an image from ECR; images elsewhere need none."""
    found = _IMAGE.fullmatch(image)
    if found is None:
        return
    account, region, repository = found.groups()
    yield "ecr:GetAuthorizationToken", "*"
    for action in PULL_ACTIONS:
        yield action, f"arn:aws:ecr:{region}:{account}:repository/{repository}"
