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
        yield from self._data_needs(model)
        if (network := model.get("VpcConfig")) and self._known(model):
            expect = partial(self._expect_network, model["ExecutionRoleArn"], network)
            yield Need(f"network interfaces in {', '.join(network['Subnets'])}", expect)
        for image in filter(None, (each.get("Image") for each in self._known(model))):
            yield Need(image, partial(self._expect_image, model["ExecutionRoleArn"], image))

    def archive_needs(self, model: Mapping[str, Any]) -> Iterator[Need]:
        """The archives of multi-model containers,
        which SageMaker reads when a request names them.
        """
        for container in filter(_is_multi_model, self._known(model)):
            bucket, prefix = _split(container["ModelDataUrl"])
            for key in self._keys(bucket, prefix):
                if "/" not in key[len(prefix) :] and key.endswith(".tar.gz"):
                    yield self._data_need(model["ExecutionRoleArn"], bucket, key, is_prefix=False)

    def _data_needs(self, model: Mapping[str, Any]) -> Iterator[Need]:
        role = model["ExecutionRoleArn"]
        for container in self._known(model):
            if "ModelDataUrl" in container:
                bucket, key = _split(container["ModelDataUrl"])
                yield self._data_need(role, bucket, key, is_prefix=_is_multi_model(container))
            elif "ModelDataSource" in container:
                yield from self._file_needs(role, container["ModelDataSource"]["S3DataSource"])

    def _known(self, model: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The containers of which something is known;
        a role outside the stacks may do what it may.
        """
        is_known = self.knows_models and not is_assumed_role(self.api, model["ExecutionRoleArn"])
        return (
            [*(model.get("Containers") or ()), model.get("PrimaryContainer") or {}]
            if is_known
            else []
        )

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
        found = self.access.s3_needs.bucket(bucket)
        keys = [] if found is None else [key for key in found.keys if key.startswith(prefix)]
        return keys or [f"{prefix}{_PLACED}"] * is_placed(self.api, bucket, prefix)

    def _expect_image(self, role: str, image: str) -> None:
        if image in self.api.behaviour.deleted_images:
            raise PermissionError(f"Requested image {image} not found.")
        found = _IMAGE.fullmatch(image)
        if found and is_deleted_repository(self.api, *found.groups()):
            raise PermissionError(
                f"Requested image {image} not found: its repository does not exist."
            )
        for action, resource in _pull_needs(image):
            if not self.access.allows(role, action, resource, {}):
                raise PermissionError(f"Could not access image {image}: {action} is not allowed")

    def _expect_network(self, role: str, network: Mapping[str, list[str]]) -> None:
        """Ask for each resource that an action supports (Service Authorization Reference,
        Amazon EC2).
        """
        prefix = f"arn:aws:ec2:{self.api.region}:{self.api.account}:"
        interface = f"{prefix}network-interface/eni-0"
        needs = [(each, "*" if ":Describe" in each else interface) for each in NETWORK_ACTIONS]
        for kind, member in (("subnet", "Subnets"), ("security-group", "SecurityGroupIds")):
            needs += [
                ("ec2:CreateNetworkInterface", f"{prefix}{kind}/{each}") for each in network[member]
            ]
        ec2 = self.api.backend("ec2")
        vpcs = vpcs_of_subnets(ec2, network["Subnets"])
        for group, vpc in vpcs_of_groups(ec2, network["SecurityGroupIds"]).items():
            if vpcs and vpc not in vpcs:
                raise PermissionError(
                    f"Security group {group} and the subnets are of different VPCs"
                )
        for action, resource in needs:
            if not self.access.allows(role, action, resource, {}):
                subnets = ", ".join(network["Subnets"])
                raise PermissionError(f"Could not attach to {subnets}: {action} is not allowed")

    def as_sagemaker(self) -> dict[str, Any]:
        """What assumes an execution role: SageMaker, for this account's resources."""
        source = f"arn:aws:sagemaker:{self.api.region}:{self.api.account}:model/*"
        context = {"aws:SourceAccount": self.api.account, "aws:SourceArn": source}
        return {"service": "sagemaker.amazonaws.com", "context": context}

    def _expect_data(self, role_arn: str, bucket: str, key: str, *, is_prefix: bool) -> None:
        try:
            self.access.expect_trust(role_arn, **self.as_sagemaker())
        except (StackError, NoSuchRoleError) as error:
            raise PermissionError(f"Could not assume role {role_arn}: {error}") from None
        url, arn = f"s3://{bucket}/{key}", f"arn:aws:s3:::{bucket}"
        is_assumed = is_assumed_bucket(self.api, bucket)
        if self.access.s3_needs.bucket(bucket) is None and not is_assumed:
            raise PermissionError(f"Could not access model data at {url}: NoSuchBucket")
        if is_prefix:
            self._expect(role_arn, "s3:ListBucket", arn, url, {"s3:prefix": key})
            return
        self._expect(role_arn, "s3:GetObject", f"{arn}/{key}", url, {})
        encryption_key = self.access.s3_needs.key_of(f"{arn}/{key}")
        if self.access.s3_needs.object(f"{arn}/{key}") is None and not is_assumed:
            if not is_placed(self.api, bucket, key) and not may_be_filled_outside(self.api, bucket):
                raise PermissionError(f"Could not access model data at {url}: 404")
            encryption_key = self.access.s3_needs.default_key(bucket)
        if encryption_key is not None:
            for service in services_of_s3(self.api.region):
                self._expect(
                    role_arn, "kms:Decrypt", encryption_key, url, {"kms:ViaService": service}
                )

    def _expect_files(self, role_arn: str, source: Mapping[str, str]) -> None:
        bucket, prefix = _split(source["S3Uri"])
        if (source["S3DataType"], source["CompressionType"]) != ("S3Prefix", "None") or prefix[
            -1:
        ] != "/":
            raise PermissionError(
                f"Could not access model data at {source['S3Uri']}: not a prefix of files"
            )
        self._expect_data(role_arn, bucket, prefix, is_prefix=True)
        keys = self._keys(bucket, prefix)
        is_unknown = is_assumed_bucket(self.api, bucket) or may_be_filled_outside(self.api, bucket)
        if not keys and is_unknown:
            return
        if not keys or any(key.endswith("/") for key in keys):
            raise PermissionError(
                f"Could not access model data at {source['S3Uri']}: {len(keys)} objects"
            )

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
