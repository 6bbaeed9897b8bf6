"""The name of an endpoint that was imported by its ARN alone, which does not tell it."""

from __future__ import annotations

from constructs import Construct

from constructs_triton_core.errors import InvalidValueError


def known_endpoint_name(construct: Construct, endpoint_name: str | None) -> str:
    """Return an endpoint's name.

    Raises:
        InvalidValueError: the endpoint was imported by its ARN alone. An ARN contains the name in
            lower case, and metrics, logs and scalable targets have it as it was given.
    """
    if endpoint_name is None:
        raise InvalidValueError(
            f"{construct.node.path}: needs the name of the endpoint, which its ARN contains in "
            "lower case only; import it with from_endpoint_attributes(endpoint_name=..., "
            "endpoint_arn=...)"
        )
    return endpoint_name
