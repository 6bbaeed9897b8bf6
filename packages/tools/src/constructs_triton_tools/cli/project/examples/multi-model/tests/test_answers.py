"""The answers of the models.

Triton runs them on this machine, or the tests are skipped with the reason.
"""

from pathlib import Path

import numpy as np
import pytest

from constructs_triton.testing import assert_responses

TESTS = Path(__file__).parent


def test_recorded_answers(triton_client):
    """The models answer the requests of requests.json within their tolerances."""
    assert_responses(triton_client, TESTS / "requests.json")


@pytest.mark.parametrize(
    ("language", "good", "bad"),
    [
        ("en", "The game is great and easy.", "The game is not good, and it arrived broken."),
        ("de", "Das Spiel ist toll und einfach.", "Das Spiel ist nicht gut und kam kaputt an."),
        ("fr", "Le jeu est excellent et facile.", "Le jeu n'est pas bon, et il est cassé."),
    ],
)
def test_model_of_the_language_scores_reviews(triton_client, language, good, bad):
    """One model recognizes the language, and the model of this language scores the reviews."""
    inputs = {"review": np.array([[good], [bad]])}
    languages = triton_client.infer(inputs, TargetModel="language")["language"].ravel()
    assert languages.tolist() == [language.encode()] * 2
    scores = triton_client.infer(inputs, TargetModel=f"sentiment-{language}")["score"].ravel()
    assert scores[0] > 0 > scores[1]
