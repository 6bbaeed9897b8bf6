"""Asks the gateway of a local run, from another process."""

from __future__ import annotations

from contextlib import closing
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.errors import LocalEndpointError

_TIMEOUT_SECONDS = 30.0
_MAXIMUM_BYTES = 64 * 2**20


def ask_gateway(url: str, path: str) -> dict[str, Any]:
    """Return the answer of the gateway at ``url`` to GET ``path``.

    Raises:
        LocalEndpointError: there is no gateway, or its answer is not a JSON object.
    """
    address = urlsplit(url)
    try:
        with closing(
            HTTPConnection(address.hostname or "", address.port, timeout=_TIMEOUT_SECONDS)
        ) as caller:
            caller.request("GET", path)
            response = caller.getresponse()
            answer = parse_bounded_json(response.read(_MAXIMUM_BYTES))
    except (OSError, HTTPException, ValueError) as error:
        answer = error
    if not isinstance(answer, dict):
        raise LocalEndpointError(
            f"{url}: no local run answers there ({answer!s:.80}); "
            "give the URL that `local up` prints"
        )
    return answer
