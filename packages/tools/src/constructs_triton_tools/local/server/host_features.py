"""What this machine allows: private mounts, private addresses, network isolation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_tools.local.server import namespaces, private_address

__all__ = [
    "has_network_isolation",
    "has_private_addresses",
    "has_private_mounts",
    "why_no_private_mounts",
]

_Report = Callable[[str], None]


def why_no_private_mounts(*, is_wanted: bool) -> str | None:
    """Try whether each server can see its models at ``/opt/ml``, and return why not."""
    return namespaces.why_no_private_mounts() if is_wanted else "--no-private-mounts was given"


def has_private_mounts(needed: Iterable[Path], report: _Report, why_not: str | None) -> bool:
    """Whether each server can see its models at ``/opt/ml``; reports why not.

    ``needed`` are paths that it must still be able to read. ``why_not`` is what
    :func:`why_no_private_mounts` has returned.
    """
    reason = why_not or namespaces.why_hidden(needed)
    if reason is not None:
        report(
            f"{namespaces.CONTAINER_FOLDER}: cannot be mounted for each server ({reason}); a model "
            "that opens files below it will not find them. Use the path that Triton passes to "
            "initialize, which works on your machine and in AWS"
        )
    return reason is None


def has_private_addresses(report: _Report, *, allows_open_ports: bool) -> bool:
    """Whether servers can have a Unix socket in the place of their TCP port.

    Raises:
        LocalEndpointError: they cannot, and open ports are not allowed.
    """
    reason = private_address.why_unavailable()
    if reason is None:
        return True
    risk = (
        "the Triton server listens on all network interfaces, so anyone who can reach this machine "
        "can call your models and load code"
    )
    if not allows_open_ports:
        raise LocalEndpointError(
            f"local: this platform has no private addresses for servers ({reason}); use Linux 5.9 "
            f"or newer outside gVisor, or accept the risk with --allow-open-ports: {risk}"
        )
    report(
        f"--allow-open-ports: this platform has no private addresses for servers ({reason}): {risk}"
    )
    return False


def has_network_isolation(isolated: Sequence[str], report: _Report, *, has_addresses: bool) -> bool:
    """Whether the variants in ``isolated`` can run without a network; reports why not."""
    if not isolated:
        return True
    reason = (
        namespaces.why_no_network_isolation() if has_addresses else "--allow-open-ports is in use"
    )
    if reason is not None:
        report(
            f"{', '.join(isolated)}: network isolation does not work on this machine ({reason}): "
            "these models can reach the network, while in AWS they cannot"
        )
    return reason is None
