"""Mahalanobis distance from a normal state, which sees what one feature at a time does not show.

A warm pump that draws much current works hard; a cool one that draws as much is failing. Each value
alone is usual in both cases, their combination only in the first.
"""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Detector(NamedTuple):
    """The normal state of d features.

    mean and standard_deviation are float64 [d] in each feature's unit; whitening, float64 [d, d], turns
    z-scores into uncorrelated ones; a distance above threshold is an anomaly.
    """

    mean: np.ndarray
    standard_deviation: np.ndarray
    whitening: np.ndarray
    threshold: float


def load_detector(path: Path) -> Detector:
    """Read the parameters of a detector; the threshold is the root of a chi-square quantile.

    The file's 4.297 is the root of 18.467, which one in a thousand normal readings of four features
    exceeds. Raises numpy.linalg.LinAlgError when the correlations contradict each other.
    """
    content = json.loads(path.read_text(encoding="utf-8"))
    return Detector(
        np.array(content["mean"]),
        np.array(content["standard_deviation"]),
        np.linalg.inv(np.linalg.cholesky(np.array(content["correlation"]))),
        float(content["threshold"]),
    )


def z_scores(detector: Detector, readings: np.ndarray) -> np.ndarray:
    """Return how many standard deviations each value of readings [n, d] is from its mean: float64 [n, d]."""
    return (readings - detector.mean) / detector.standard_deviation


def distances(detector: Detector, scores: np.ndarray) -> np.ndarray:
    """Return the Mahalanobis distance of each row of z-scores [n, d]: float64 [n, 1]."""
    return np.linalg.norm(scores @ detector.whitening.T, axis=1, keepdims=True)
