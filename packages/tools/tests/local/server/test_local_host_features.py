"""What a run reports where the machine does not allow private mounts,
addresses or network isolation.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_tools.local.server import namespaces, private_address
from constructs_triton_tools.local.server.host_features import (
    has_network_isolation,
    has_private_addresses,
    has_private_mounts,
    why_no_private_mounts,
)

Because = Callable[[str | None], None]


@pytest.fixture
def because(monkeypatch: pytest.MonkeyPatch) -> Because:
    """Sets the reason why nothing is available; ``None`` makes all available."""

    def set_reason(reason: str | None) -> None:
        monkeypatch.setattr(namespaces, "why_no_private_mounts", lambda: reason)
        monkeypatch.setattr(namespaces, "why_no_network_isolation", lambda: reason)
        monkeypatch.setattr(private_address, "why_unavailable", lambda: reason)

    return set_reason


def test_what_is_available_is_not_mentioned(because: Because) -> None:
    """Nothing is reported, also where open ports are allowed but not needed."""
    messages: list[str] = []
    because(None)
    assert has_private_mounts([], messages.append, why_no_private_mounts(is_wanted=True))
    assert has_private_addresses(messages.append, allows_open_ports=False)
    assert has_private_addresses(messages.append, allows_open_ports=True)
    assert has_network_isolation(["e/v"], messages.append, has_addresses=True)
    assert messages == []


@pytest.mark.parametrize("is_wanted", [True, False])
def test_without_private_mounts_the_reason_is_reported(because: Because, is_wanted: bool) -> None:
    """The kernel's reason, or the option that turned them off."""
    messages: list[str] = []
    because("no such thing" if is_wanted else None)
    why_not = why_no_private_mounts(is_wanted=is_wanted)
    assert not has_private_mounts([], messages.append, why_not)
    (message,) = messages
    assert ("(no such thing)" if is_wanted else "(--no-private-mounts was given)") in message


def test_without_private_addresses_a_run_needs_permission(because: Because) -> None:
    """The error names the reason, what would work and the option;
    with the option it becomes a warning.
    """
    messages: list[str] = []
    because("seccomp: Invalid argument")
    expected = r"^local: .* \(seccomp: Invalid argument\); use Linux 5.9 .* --allow-open-ports"
    with pytest.raises(LocalEndpointError, match=expected):
        has_private_addresses(messages.append, allows_open_ports=False)
    assert messages == []
    assert not has_private_addresses(messages.append, allows_open_ports=True)
    (message,) = messages
    assert message.startswith("--allow-open-ports: ")
    assert "all network interfaces" in message


@pytest.mark.parametrize("has_addresses", [True, False])
def test_without_network_isolation_its_endpoints_are_named(
    because: Because, has_addresses: bool
) -> None:
    """A server without a private address cannot be reached in its own network,
    so that is a reason too.
    """
    messages: list[str] = []
    because("unshare: Operation not permitted" if has_addresses else None)
    assert not has_network_isolation(["e/v", "f/w"], messages.append, has_addresses=has_addresses)
    (message,) = messages
    reason = "unshare: Operation not permitted" if has_addresses else "--allow-open-ports is in use"
    assert message.startswith(
        f"e/v, f/w: network isolation does not work on this machine ({reason}): "
    )


def test_without_isolated_endpoints_nothing_is_tried(because: Because) -> None:
    """The templates of most apps ask for no isolation."""
    because("unshare: Operation not permitted")
    assert has_network_isolation([], pytest.fail, has_addresses=True)
