"""Requests to services, as other rooms see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SignedRequest:
    """A request whose permissions are to be decided."""

    access_key_id: str
    service: str
    """The service of the signature."""
    action: str
    resource: str
    """What moto knows of the resource: the ARN of a bucket or an object, or an asterisk."""
    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: Any
    """Bytes, a string if the service's protocol has text, or what moto has read from it."""

    def parameter(self, name: str) -> str:
        """A parameter of the query protocol."""
        return self.query[name][0]


def credential_scope(headers: Mapping[str, str]) -> list[str]:
    """Return the parts of the credential of a signed request: access key ID, date, Region, …."""
    authorization = headers.get("Authorization", "")
    return authorization.partition("Credential=")[2].partition(",")[0].split("/")


def access_key_id(headers: Mapping[str, str]) -> str:
    """Return who has signed a request; empty without a signature."""
    return credential_scope(headers)[0]
