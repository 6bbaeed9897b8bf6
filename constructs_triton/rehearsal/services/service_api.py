"""Calls moto's services through boto3; checks and records every request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from ..behaviour import CALM, Behaviour
from ..errors import StackError
from .request_shapes import conform

__all__ = ["ServiceApi", "client"]

CREDENTIALS = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}


def client(service: str, endpoint_url: str, region: str, credentials: dict[str, str] | None = None) -> Any:
    """A boto3 client without retries, with path-style buckets since loopback has no subdomains."""
    config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
    make: Any = boto3.client  # the type depends on the service's name
    return make(
        service,
        endpoint_url=endpoint_url,
        region_name=region,
        config=config,
        **(CREDENTIALS if credentials is None else credentials),
    )


@dataclass
class ServiceApi:
    """Calls services as CloudFormation does; ``calls`` records service, operation and request."""

    endpoint_url: str
    account: str
    region: str
    behaviour: Behaviour = CALM
    calls: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    _clients: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        """A client of the administrator."""
        if service not in self._clients:
            self._clients[service] = client(service, self.endpoint_url, self.region)
        return self._clients[service]

    def call(self, service: str, operation: str, **request: Any) -> Any:
        """Call an operation; raises ``StackError`` with the service's message or all invalid members."""
        conformed, errors = conform(service, operation, request)
        if errors:
            raise StackError(f"Invalid request provided: {'; '.join(errors)}")
        self.calls.append((service, operation, conformed))
        try:
            return getattr(self.client(service), xform_name(operation))(**conformed)
        except ClientError as error:
            details = error.response["Error"]
            raise StackError(f"{details['Message']} (Service: {service}, Code: {details['Code']})") from error
        except BotoCoreError as error:
            raise StackError(str(error)) from error
