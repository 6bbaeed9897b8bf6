"""An ensemble written in Python runs in the real server."""

from __future__ import annotations

import numpy as np
import pytest
from triton_server import needs_server

from constructs_triton_client import TritonClient
from constructs_triton_tools.local import LocalEndpoint

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]


def test_built_ensemble_answers(shared: LocalEndpoint) -> None:
    """A batch goes through all steps: inferred types,
    dims and order are those that the server takes.
    """
    client = TritonClient.for_endpoint("colours", endpoint_url=shared.endpoint_url)
    images = np.zeros((2, 4, 3), dtype=np.uint8)
    images[0, :, 1] = 255
    images[1, :, 2] = 51
    result = client.infer({"image": images})
    assert result["label"].ravel().tolist() in (["green", "blue"], [b"green", b"blue"])
    np.testing.assert_allclose(result["scores"], np.array([[0, 4, 0], [0, 0, 0.8]]), rtol=1e-6)
