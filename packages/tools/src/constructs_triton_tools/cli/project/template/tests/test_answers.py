"""The answers of the model.

Triton runs it on this machine, or the tests are skipped with the reason.
"""

from pathlib import Path

import numpy as np

from constructs_triton.testing import assert_responses

TESTS = Path(__file__).parent


def test_recorded_answers(triton_client):
    """The endpoint answers the requests of requests.json within their tolerances."""
    assert_responses(triton_client, TESTS / "requests.json")


def test_more_of_a_good_feature_gives_a_higher_score(triton_client):
    """The scores of two purchases are in the right order."""
    features = np.array([[0, 0, 1], [0, 0, 2]], np.float32)
    lower, higher = triton_client.infer({"features": features})["score"].ravel()
    assert lower < higher
