"""The wire format of CloudFormation's API: form parameters in, XML out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

_NAMESPACE = "http://cloudformation.amazonaws.com/doc/2010-05-15/"
_METADATA = "<ResponseMetadata><RequestId>loopback</RequestId></ResponseMetadata>"


def decode_request(body: str) -> dict[str, Any]:
    """``A.member.1.B=c`` becomes ``{"A": [{"B": "c"}]}``."""
    root: dict[str, Any] = {}
    for name, value in parse_qsl(body, keep_blank_values=True):
        *path, last = name.split(".")
        place = root
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    decoded: dict[str, Any] = _with_lists(root)
    return decoded


def encode_answer(action: str, result: dict[str, Any]) -> str:
    """The response to an action."""
    return (
        f'<{action}Response xmlns="{_NAMESPACE}"><{action}Result>{_xml(result)}</{action}Result>'
        f"{_METADATA}</{action}Response>"
    )


def encode_error(code: str, message: str) -> str:
    """The response to a refused request."""
    error = f"<Error><Type>Sender</Type><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
    return f'<ErrorResponse xmlns="{_NAMESPACE}">{error}<RequestId>loopback</RequestId></ErrorResponse>'


def encode_time(seconds: float) -> str:
    """Seconds since the epoch as the API writes them."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _with_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if set(value) == {"member"}:
        members = value["member"]
        return [_with_lists(members[index]) for index in sorted(members, key=int)]
    return {name: _with_lists(each) for name, each in value.items()}


def _xml(value: Any) -> str:
    if isinstance(value, dict):
        return "".join(f"<{name}>{_xml(each)}</{name}>" for name, each in value.items() if each is not None)
    if isinstance(value, list):
        return "".join(f"<member>{_xml(each)}</member>" for each in value)
    return str(value).lower() if isinstance(value, bool) else escape(str(value))
