"""AWS's query protocol, for services that moto does not answer itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from moto.core.parse import QueryParser, RequestDict
from moto.core.serialize import QuerySerializer
from moto.core.utils import get_service_model


def request_of(service: str, action: str, form: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a request by the form that contains it."""
    operation = get_service_model(service).operation_model(action)
    found: dict[str, Any] = QueryParser(operation).parse(cast("RequestDict", {"values": form}))
    return found


def answer_of(service: str, action: str, members: Mapping[str, Any]) -> str | bytes:
    """Return an answer in XML."""
    operation = get_service_model(service).operation_model(action)
    body: str | bytes = QuerySerializer(operation).serialize(members)["body"]
    return body
