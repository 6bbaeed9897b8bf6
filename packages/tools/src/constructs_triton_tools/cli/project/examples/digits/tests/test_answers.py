"""The answers of the ensemble.

Triton runs it on this machine, or the tests are skipped with the reason.
"""

from pathlib import Path

import numpy as np

from constructs_triton.testing import assert_responses

TESTS = Path(__file__).parent


def test_recorded_answers(triton_client):
    """The endpoint answers the requests of requests.json within their tolerances."""
    assert_responses(triton_client, TESTS / "requests.json")


def test_image_of_a_seven(triton_client):
    """The most probable digit of the image is its label."""
    image = np.array([[(TESTS / "seven.png").read_bytes()]], dtype=object)
    result = triton_client.infer({"image": image})
    assert result["label"].tolist() == [[b"7"]]
    assert result["probabilities"].argmax() == 7
