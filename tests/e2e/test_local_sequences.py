"""Sequences on several variants, with the real server: what docs/guides/sequences.md says."""

from __future__ import annotations

import numpy as np
import pytest
from triton_server import needs_server

from constructs_triton_client import SequencePosition, TritonClient
from constructs_triton_core.errors import InvocationError
from constructs_triton_tools.local import LocalEndpoint

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]

ONE = {"x": np.ones((1, 1), np.float32)}


@pytest.fixture
def client(shared: LocalEndpoint) -> TritonClient:
    """A client of an endpoint with two variants of a model that adds up a sequence."""
    return TritonClient.for_endpoint("sums", endpoint_url=shared.endpoint_url)


def add(client: TritonClient, id: int, variant: str, *, start: bool = False) -> float:
    sequence = SequencePosition(id, start=start)
    return float(client.infer(ONE, sequence=sequence, TargetVariant=variant)["sum"].item())


def test_a_variant_keeps_the_sequence_together(client: TritonClient) -> None:
    """Requests of two sequences that each name their variant are added up apart."""
    sums = [add(client, 7, "A", start=True), add(client, 8, "B", start=True)]
    sums += [add(client, 7, "A"), add(client, 8, "B"), add(client, 7, "A")]
    assert sums == [1, 1, 2, 2, 3]


def test_another_variant_does_not_know_the_sequence(client: TritonClient) -> None:
    """The next request of a sequence is refused by an instance that has not seen its start."""
    assert add(client, 9, "A", start=True) == 1
    with pytest.raises(InvocationError, match="must specify the START flag"):
        add(client, 9, "B")
