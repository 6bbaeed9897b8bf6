"""Fits the last layer of the small network: ``python train.py``; needs Pillow and scikit-learn, a
minute.

Writes ``resnet.npz`` and ``inception.npz``, and prints the share of 300 new pictures that each
names rightly.
"""

# ruff: noqa: T201 - a command

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from network import COLUMNS, ROWS, _features, log_probabilities
from pictures import jpeg, picture
from preprocessing import inception_pixels, resnet_pixels
from sklearn.linear_model import LogisticRegression

HERE = Path(__file__).parent
FILTERS, PICTURES, HELD_OUT, SEED = 12, 3000, 300, 20240817


def main() -> None:
    """Fit both networks and write their weights."""
    # RandomState's stream is frozen for good; default_rng's may change between NumPy releases.
    random = np.random.RandomState(SEED)
    classes = random.randint(-60, 1000, PICTURES + HELD_OUT)
    files = [jpeg(picture(None if each < 0 else int(each), random)) for each in classes]
    for name, pixels_of in (("resnet", resnet_pixels), ("inception", inception_pixels)):
        channels_last = name == "inception"
        weights = _fit(_batches(files[:PICTURES], pixels_of, channels_last), classes[:PICTURES])
        np.savez_compressed(HERE / f"{name}.npz", **weights)
        share = _accuracy(
            weights, _batches(files[PICTURES:], pixels_of, channels_last), classes[PICTURES:]
        )
        print(f"{name}: {share:.3f} of {HELD_OUT} pictures never seen")


def _batches(
    files: list[bytes], pixels_of: Callable[[bytes], np.ndarray], channels_last: bool
) -> list[np.ndarray]:
    batches = [
        np.stack([pixels_of(file) for file in files[start : start + 100]])
        for start in range(0, len(files), 100)
    ]
    return [batch.transpose(0, 3, 1, 2) if channels_last else batch for batch in batches]


def _fit(batches: list[np.ndarray], classes: np.ndarray) -> dict[str, np.ndarray]:
    weights = _filters(np.random.RandomState(SEED))
    parts = [_features(weights, batch) for batch in batches]
    features = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    place = classes % (ROWS * COLUMNS)
    targets = {
        "colour": np.where(classes < 0, 0, classes // (ROWS * COLUMNS) + 1),
        "row": place // COLUMNS,
        "column": place % COLUMNS,
    }
    for name, target in targets.items():
        seen = slice(None) if name == "colour" else classes >= 0
        weight, bias = _last_layer(features[name][seen], target[seen])
        weights[f"{name}_weight"], weights[f"{name}_bias"] = weight, bias
    return weights


def _filters(random: np.random.RandomState) -> dict[str, np.ndarray]:
    shapes = {
        "stem": (FILTERS, 3, 3, 3),
        "residual_1": (FILTERS, FILTERS, 3, 3),
        "residual_2": (FILTERS, FILTERS, 3, 3),
    }
    return {
        name: (random.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(np.float32)
        for name, shape in shapes.items()
    }


def _last_layer(features: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fit on features of mean 0 and deviation 1, and fold that into the weights."""
    mean, deviation = features.mean(axis=0), features.std(axis=0) + 1e-6
    fitted = LogisticRegression(C=1.0, max_iter=400).fit((features - mean) / deviation, target)
    weight = fitted.coef_.T / deviation[:, None]
    return weight.astype(np.float32), (fitted.intercept_ - mean @ weight).astype(np.float32)


def _accuracy(
    weights: dict[str, np.ndarray], batches: list[np.ndarray], classes: np.ndarray
) -> float:
    predicted = np.concatenate(
        [log_probabilities(weights, batch).argmax(axis=1) for batch in batches]
    )
    return float(np.mean(predicted == np.maximum(classes, -1) + 1))


if __name__ == "__main__":
    main()
