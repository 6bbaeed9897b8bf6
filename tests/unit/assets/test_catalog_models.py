"""The pure functions of the catalog's three models."""

import numpy as np
import pytest
from sample_files import ASSETS, load

CATALOG = "model_repositories/catalog"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("The staff were very friendly, and the food excellent!", "positive"),
        ("Not good: I want a REFUND", "negative"),
        ("It isn\N{RIGHT SINGLE QUOTATION MARK}t bad", "positive"),
        ("the box is blue", "neutral"),
        ("", "neutral"),
    ],
)
def test_sentiment_names_the_tone(text: str, label: str) -> None:
    """Known words decide the score, a negation inverts them, and unknown words are ignored."""
    lexicon = load(f"{CATALOG}/sentiment/1/lexicon.py")
    words = lexicon.load_lexicon(ASSETS / CATALOG / "sentiment/1/lexicon.json")
    assert lexicon.label_of(lexicon.sentiment(words, text)) == label


def test_sentiment_grows_with_strength_and_stays_below_one() -> None:
    """An intensifier moves the score away from 0, and no score reaches 1."""
    lexicon = load(f"{CATALOG}/sentiment/1/lexicon.py")
    words = lexicon.load_lexicon(ASSETS / CATALOG / "sentiment/1/lexicon.json")
    scores = [lexicon.sentiment(words, text) for text in ("good", "very good", "great " * 1000)]
    assert 0 < scores[0] < scores[1] < scores[2] < 1


def test_anomaly_sees_what_no_single_value_shows() -> None:
    """A current that does not fit the temperature is an anomaly,
    although each value alone is normal.
    """
    detector = load(f"{CATALOG}/anomaly/1/detector.py")
    normal = detector.load_detector(ASSETS / CATALOG / "anomaly/1/parameters.json")
    readings = np.array([[62, 2.4, 5.5, 11.8], [66, 2.6, 5.7, 12.9], [57, 2.4, 5.5, 13.6]])
    scores = detector.z_scores(normal, readings)
    assert np.abs(scores).max() < 3
    found = detector.distances(normal, scores) > normal.threshold
    assert found.tolist() == [[False], [False], [True]]


def test_anomaly_rarely_alarms_on_normal_readings() -> None:
    """About one in a thousand readings drawn from the normal state exceeds the threshold."""
    detector = load(f"{CATALOG}/anomaly/1/detector.py")
    normal = detector.load_detector(ASSETS / CATALOG / "anomaly/1/parameters.json")
    independent = np.random.RandomState(1).standard_normal((100_000, 4))
    scores = independent @ np.linalg.inv(normal.whitening).T
    alarms = (detector.distances(normal, scores) > normal.threshold).mean()
    assert 0.0006 < alarms < 0.0014


def test_forecast_continues_a_line_and_damps_its_trend() -> None:
    """Without damping a line continues, with damping it rises more slowly;
    a flat series stays flat.
    """
    smoothing = load(f"{CATALOG}/forecast/1/smoothing.py")
    line = np.arange(20, dtype=np.float32)
    undamped = smoothing.forecast(smoothing.Smoothing(0.5, 0.3, 1.0), line, 3)
    np.testing.assert_allclose(undamped, [20, 21, 22])
    damped = smoothing.forecast(smoothing.Smoothing(0.5, 0.3, 0.9), line, 10)
    assert (np.diff(damped) > 0).all()
    assert (np.diff(damped, 2) < 0).all()
    flat = smoothing.forecast(smoothing.Smoothing(0.5, 0.3, 0.9), np.full(5, 7.0), 4)
    assert flat.tolist() == [7, 7, 7, 7]
