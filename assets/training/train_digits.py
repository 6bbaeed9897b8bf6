"""Train the digits classifier and write its weights: `python assets/training/train_digits.py
[FILE]`.

Training is full-batch gradient descent with momentum in float64 from a fixed seed, without
shuffling, so two runs on one machine write the same bytes. The weights are rounded, because linear
algebra libraries differ in the last bits.
"""

import sys
from pathlib import Path

import numpy as np

ASSETS = Path(__file__).resolve().parent.parent
MODELS = ASSETS / "model_repositories" / "digits"
WEIGHTS = MODELS / "classifier" / "1" / "weights.npz"
# The network is trained on the output of the deployed code, so both are imported from the deployed
# files.
sys.path[:0] = [
    str(ASSETS / "training"),
    *(str(MODELS / name / "1") for name in ("preprocess", "classifier")),
]

from network import forward  # noqa: E402 - found by the line above
from pixels import pixels_of  # noqa: E402
from split import encode_png, held_out_images, training_images  # noqa: E402

SEED = 20240817
HIDDEN = 64
STEPS = 400
LEARNING_RATE = 1.0
MOMENTUM = 0.9
WEIGHT_DECAY = 1e-4
DECIMALS = 4

Weights = dict[str, np.ndarray]


def main(arguments: list[str]) -> int:
    """Train, write the weights to the given file (or where the model reads them),
    print the accuracy.
    """
    path = Path(arguments[0]) if arguments else WEIGHTS
    weights = train()
    # np.savez sets the date of every member to 1980-01-01, so equal weights are equal bytes.
    np.savez(path, **weights)
    print(
        f"{path}: {path.stat().st_size} bytes, held-out accuracy {held_out_accuracy(weights):.4f}"
    )
    return 0


def train() -> Weights:
    """Return the trained weights, float32, rounded to DECIMALS places."""
    images, labels = training_images()
    pixels = pixels_through_png(images).astype(np.float64)
    targets = np.eye(10)[labels]
    weights = initial_weights()
    velocity = {name: np.zeros_like(value) for name, value in weights.items()}
    for step in range(STEPS):
        # The rate decreases to zero along a half cosine, so that the last steps are small.
        rate = LEARNING_RATE * (1 + np.cos(np.pi * step / STEPS)) / 2
        for name, slope in gradient(weights, pixels, targets).items():
            velocity[name] = MOMENTUM * velocity[name] - rate * slope
            weights[name] = weights[name] + velocity[name]
    return {name: np.round(value, DECIMALS).astype(np.float32) for name, value in weights.items()}


def initial_weights() -> Weights:
    """Return float64 weights drawn from the fixed seed, scaled by each layer's inputs."""
    # The numbers of RandomState never change; those of default_rng may, between NumPy releases.
    random = np.random.RandomState(SEED)
    return {
        "hidden_weight": random.standard_normal((64, HIDDEN)) / 8,
        "hidden_bias": np.zeros(HIDDEN),
        "output_weight": random.standard_normal((HIDDEN, 10)) / np.sqrt(HIDDEN),
        "output_bias": np.zeros(10),
    }


def pixels_through_png(images: np.ndarray) -> np.ndarray:
    """Return float32 [n, 1, 8, 8]: the images as the deployed preprocess model reads them."""
    return np.stack([pixels_of(encode_png(image)) for image in images])


def gradient(weights: Weights, pixels: np.ndarray, targets: np.ndarray) -> Weights:
    """Return the gradient of the mean cross-entropy, plus weight decay, for every weight."""
    flat = pixels.reshape(len(pixels), -1)
    hidden = np.tanh(flat @ weights["hidden_weight"] + weights["hidden_bias"])
    logits = hidden @ weights["output_weight"] + weights["output_bias"]
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    error = (exponentials / exponentials.sum(axis=1, keepdims=True) - targets) / len(pixels)
    back = (error @ weights["output_weight"].T) * (1 - hidden**2)
    return {
        "hidden_weight": flat.T @ back + WEIGHT_DECAY * weights["hidden_weight"],
        "hidden_bias": back.sum(axis=0),
        "output_weight": hidden.T @ error + WEIGHT_DECAY * weights["output_weight"],
        "output_bias": error.sum(axis=0),
    }


def held_out_accuracy(weights: Weights) -> float:
    """Return the share of held-out images that the weights classify correctly."""
    images, labels = held_out_images()
    predicted = forward(weights, pixels_through_png(images)).argmax(axis=1)
    return float((predicted == labels).mean())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
