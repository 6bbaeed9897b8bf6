"""Checks with the execution role what an instance reads when it starts: the model data and the image."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from moto.iam.exceptions import NotFoundException

from ..errors import StackError
from ..services.service_api import ServiceApi
from .access import Access, RoleCredentials
from .policy import Decision
from .s3_needs import services_of_s3

__all__ = ["ExecutionRoleCheck"]

_IMAGE = re.compile(r"(\d{12})\.dkr\.ecr\.([^.]+)\.amazonaws\.com/([^:@]+)[:@].+")
_PULL = ("BatchCheckLayerAvailability", "BatchGetImage", "GetDownloadUrlForLayer")


@dataclass
class ExecutionRoleCheck:
    """Asks the deployed policies as they are at this moment."""

    api: ServiceApi
    access: Access

    def assume(self, role_arn: str) -> RoleCredentials:
        """Assume the role as SageMaker, for this account's resources."""
        return self.access.assume(role_arn, **self._as_sagemaker())

    def expect_model_data(self, model: Mapping[str, Any]) -> None:
        """Raise ``PermissionError`` if the role may not read the data of a container."""
        role = model["ExecutionRoleArn"]
        for container in _containers(model):
            if "ModelDataUrl" in container:
                self._expect_trust(role)
                bucket, key = _split(container["ModelDataUrl"])
                self._expect_data(role, bucket, key, is_prefix=_is_multi_model(container))
            elif "ModelDataSource" in container:
                self._expect_trust(role)
                self._expect_files(role, container["ModelDataSource"]["S3DataSource"])

    def expect_archives(self, model: Mapping[str, Any]) -> None:
        """Raise ``PermissionError`` if the role may not read an archive of a multi-model container.

        SageMaker does not ask for it when the endpoint starts.
        """
        for container in filter(_is_multi_model, _containers(model)):
            bucket, prefix = _split(container["ModelDataUrl"])
            for key in list(self.access.s3_needs.bucket(bucket).keys):
                if key.startswith(prefix) and "/" not in key[len(prefix) :] and key.endswith(".tar.gz"):
                    self._expect_data(model["ExecutionRoleArn"], bucket, key, is_prefix=False)

    def expect_image(self, model: Mapping[str, Any]) -> None:
        """Raise ``PermissionError`` if the role may not pull the image of a container."""
        for container in _containers(model):
            image = container.get("Image", "")
            for action, resource in _pull_needs(image):
                if not self.access.allows(model["ExecutionRoleArn"], action, resource, {}):
                    raise PermissionError(f"Could not access image {image}: {action} is not allowed")

    def _as_sagemaker(self) -> dict[str, Any]:
        source = f"arn:aws:sagemaker:{self.api.region}:{self.api.account}:model/*"
        context = {"aws:SourceAccount": self.api.account, "aws:SourceArn": source}
        return {"service": "sagemaker.amazonaws.com", "context": context}

    def _expect_trust(self, role_arn: str) -> None:
        try:
            self.access.expect_trust(role_arn, **self._as_sagemaker())
        except (StackError, NotFoundException) as error:
            raise PermissionError(f"Could not assume role {role_arn}: {error}") from None

    def _expect_data(self, role_arn: str, bucket: str, key: str, *, is_prefix: bool) -> None:
        url, arn = f"s3://{bucket}/{key}", f"arn:aws:s3:::{bucket}"
        if self.access.s3_needs.bucket(bucket) is None:
            raise PermissionError(f"Could not access model data at {url}: NoSuchBucket")
        if is_prefix:
            self._expect(role_arn, "s3:ListBucket", arn, url, {"s3:prefix": key})
            return
        self._expect(role_arn, "s3:GetObject", f"{arn}/{key}", url, {})
        if self.access.s3_needs.object(f"{arn}/{key}") is None:
            raise PermissionError(f"Could not access model data at {url}: 404")
        encryption_key = self.access.s3_needs.key_of(f"{arn}/{key}")
        if encryption_key is not None:
            for service in services_of_s3(self.api.region):
                self._expect(role_arn, "kms:Decrypt", encryption_key, url, {"kms:ViaService": service})

    def _expect_files(self, role_arn: str, source: Mapping[str, str]) -> None:
        """SageMaker lists the prefix, and each key without the prefix is the path of a file."""
        bucket, prefix = _split(source["S3Uri"])
        if (source["S3DataType"], source["CompressionType"]) != ("S3Prefix", "None") or prefix[-1:] != "/":
            raise PermissionError(f"Could not access model data at {source['S3Uri']}: not a prefix of files")
        self._expect_data(role_arn, bucket, prefix, is_prefix=True)
        keys = [key for key in self.access.s3_needs.bucket(bucket).keys if key.startswith(prefix)]
        if not keys or any(key.endswith("/") for key in keys):
            raise PermissionError(f"Could not access model data at {source['S3Uri']}: {len(keys)} objects")
        for key in keys:
            self._expect_data(role_arn, bucket, key, is_prefix=False)

    def _expect(
        self, role_arn: str, action: str, resource: str, url: str, context: Mapping[str, str]
    ) -> None:
        is_denied = self.access.bucket_decision(resource, action) is Decision.DENIED
        if is_denied or not self.access.allows(role_arn, action, resource, context):
            raise PermissionError(f"Could not access model data at {url}: 403")


def _is_multi_model(container: Mapping[str, Any]) -> bool:
    return container.get("Mode") == "MultiModel"


def _containers(model: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*(model.get("Containers") or ()), model.get("PrimaryContainer") or {}]


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
    for operation in _PULL:
        yield f"ecr:{operation}", f"arn:aws:ecr:{region}:{account}:repository/{repository}"
