"""Exponential smoothing with a damped trend.

Source of the method: E. S. Gardner and E. McKenzie, "Forecasting Trends in Time Series", Management
Science 31 (1985).
"""

from typing import NamedTuple

import numpy as np


class Smoothing(NamedTuple):
    """How fast level and trend follow the series (0 to 1), and what is left of the trend each step."""

    level: float
    trend: float
    damping: float


def forecast(smoothing: Smoothing, series: np.ndarray, horizon: int) -> np.ndarray:
    """Return the next horizon values of a series of two values or more: float64 [horizon]."""
    level, trend = fit(smoothing, series)
    # After k steps the trend has added damping + damping^2 + ... + damping^k of itself.
    return level + trend * np.cumsum(smoothing.damping ** np.arange(1, horizon + 1))


def fit(smoothing: Smoothing, series: np.ndarray) -> tuple[float, float]:
    """Return level and trend at the series' end, in its unit and in its unit a step."""
    level, trend = float(series[0]), float(series[1]) - float(series[0])
    for value in series[1:].tolist():
        expected = level + smoothing.damping * trend
        risen = smoothing.level * value + (1 - smoothing.level) * expected
        trend = smoothing.trend * (risen - level) + (1 - smoothing.trend) * smoothing.damping * trend
        level = risen
    return level, trend
