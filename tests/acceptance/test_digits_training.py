"""The training of the digits ensemble, from its split to the weights in the repository."""

from __future__ import annotations

import numpy as np
import pytest
from sample_files import load

DIGITS = "model_repositories/digits"
BUDGET_MINUTES = 1


def test_no_held_out_image_is_trained_on() -> None:
    """No held-out image is among the training images, also if it occurs twice."""
    split = load("training/split.py")
    (trained, trained_labels), (held_out, held_out_labels) = (
        split.training_images(),
        split.held_out_images(),
    )
    assert len(trained) == len(trained_labels)
    assert len(held_out) == len(held_out_labels) > 300
    assert len(trained) + len(held_out) == 1797
    assert set(held_out_labels.tolist()) == set(range(10))
    assert not {image.tobytes() for image in trained} & {image.tobytes() for image in held_out}


def test_training_reproduces_the_weights_in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training uses only training images and writes the committed weights,
    which are small and accurate.
    """
    training, network = load("training/train_digits.py"), load(f"{DIGITS}/classifier/1/network.py")
    seen: set[bytes] = set()
    read = training.pixels_through_png

    def remembering(images: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        seen.update(image.tobytes() for image in images)
        return read(images)  # type: ignore[no-any-return]

    monkeypatch.setattr(training, "pixels_through_png", remembering)
    trained = training.train()
    monkeypatch.undo()
    assert seen
    assert not seen & {image.tobytes() for image in training.held_out_images()[0]}
    deployed = network.load_weights(training.WEIGHTS)
    assert deployed.keys() == trained.keys()
    for name, value in trained.items():
        # Another linear algebra library may differ by five units of the last decimal place.
        np.testing.assert_allclose(deployed[name], value, rtol=0, atol=5e-4, err_msg=name)
    assert training.held_out_accuracy(deployed) >= 0.96
    assert training.WEIGHTS.stat().st_size < 300_000
