"""Checks the model data with the execution role, as CreateModel does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from .access import Access, RoleCredentials
from .errors import StackError
from .service_api import ServiceApi, client

__all__ = ["ExecutionRoleCheck"]


@dataclass
class ExecutionRoleCheck:
    """Sends requests to S3 with the role's credentials, so that the deployed policies decide."""

    api: ServiceApi
    access: Access

    def assume(self, role_arn: str) -> RoleCredentials:
        """Assume the role as SageMaker, for this account's resources."""
        source = f"arn:aws:sagemaker:{self.api.region}:{self.api.account}:model/*"
        context = {"aws:SourceAccount": self.api.account, "aws:SourceArn": source}
        return self.access.assume(role_arn, service="sagemaker.amazonaws.com", context=context)

    def model_data_is_readable(self, model: Mapping[str, Any]) -> None:
        """Raise ``PermissionError`` if the role may not read the data of a container."""
        containers = [*model.get("Containers", []), model.get("PrimaryContainer", {})]
        locations = [
            (each["ModelDataUrl"], each.get("Mode")) for each in containers if "ModelDataUrl" in each
        ]
        if not locations:
            return
        try:
            credentials = self.assume(model["ExecutionRoleArn"])
        except (StackError, ClientError) as error:
            raise PermissionError(f"Could not assume role {model['ExecutionRoleArn']}: {error}") from None
        s3 = client("s3", self.api.endpoint_url, self.api.region, credentials.as_arguments())
        for url, mode in locations:
            bucket, _, key = url.removeprefix("s3://").partition("/")
            try:
                if mode == "MultiModel":
                    s3.list_objects_v2(Bucket=bucket, Prefix=key)
                else:
                    s3.head_object(Bucket=bucket, Key=key)
            except ClientError as error:
                code = error.response["Error"]["Code"]
                raise PermissionError(f"Could not access model data at {url}: {code}") from None
