"""The pure functions of the digits ensemble's models, its split and its training."""

import ast
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sample_files import ASSETS, load

DIGITS = "model_repositories/digits"
MODEL_FILES = sorted((ASSETS / "model_repositories").glob("*/*/1/*.py"))


def test_an_image_of_the_networks_size_is_only_scaled() -> None:
    """An 8 x 8 image reaches the network as its exact values divided by 255."""
    pixels, split = load(f"{DIGITS}/preprocess/1/pixels.py"), load("training/split.py")
    image = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4
    expected = (image / 255).astype(np.float32)[np.newaxis]
    np.testing.assert_array_equal(pixels.pixels_of(split.encode_png(image)), expected)


@pytest.mark.parametrize(("height", "width"), [(16, 16), (160, 80), (13, 29), (3, 5), (1, 1)])
def test_resizing_averages_areas(height: int, width: int) -> None:
    """Every size becomes 8 x 8 with the same mean brightness,
    and an enlarged image is restored exactly.
    """
    pixels = load(f"{DIGITS}/preprocess/1/pixels.py")
    image = np.random.RandomState(height).uniform(0, 255, (height, width))
    resized = pixels.resize(image, 8, 8)
    assert resized.shape == (8, 8)
    assert resized.mean() == pytest.approx(image.mean())
    blown_up = np.kron(resized, np.ones((3, 5)))
    np.testing.assert_allclose(pixels.resize(blown_up, 8, 8), resized)


def test_grey_weighs_colours_and_darkens_transparency() -> None:
    """White is 255 in every colour type, green is brighter than blue,
    and a transparent pixel is dark.
    """
    grey = load(f"{DIGITS}/preprocess/1/pixels.py").grey
    white, green, blue = (255, 255, 255), (0, 255, 0), (0, 0, 255)
    image = np.array([[white, green, blue]], np.uint8)
    np.testing.assert_allclose(grey(image), [[255, 149.685, 29.07]])
    assert grey(np.array([[[200, 255], [200, 0]]], np.uint8)).tolist() == [[200, 0]]
    assert grey(np.array([[[*white, 51]]], np.uint8)).tolist() == [[pytest.approx(51)]]


def test_softmax_survives_large_logits() -> None:
    """Logits far beyond exp's range give probabilities that sum to 1 and the right labels."""
    scores = load(f"{DIGITS}/postprocess/1/scores.py")
    labels = scores.load_labels(ASSETS / DIGITS / "postprocess/1/labels.txt")
    logits = np.zeros((2, 10), np.float32)
    logits[0, 7], logits[1, 3] = 5000, 2
    probabilities = scores.softmax(logits)
    assert probabilities.dtype == np.float32
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-6)
    assert scores.most_likely(labels, probabilities).tolist() == [[b"7"], [b"3"]]


def test_equal_weights_are_written_alike(tmp_path: Path) -> None:
    """The weights file contains no time, so writing it again gives the committed bytes.

    Only the version in the headers of the archive may differ: Python 3.11.4 changed it.
    """
    training, network = load("training/train_digits.py"), load(f"{DIGITS}/classifier/1/network.py")
    np.savez(tmp_path / "again.npz", **network.load_weights(training.WEIGHTS))
    with (
        zipfile.ZipFile(training.WEIGHTS) as kept,
        zipfile.ZipFile(tmp_path / "again.npz") as again,
    ):
        assert [(each.filename, kept.read(each)) for each in kept.infolist()] == [
            (each.filename, again.read(each)) for each in again.infolist()
        ]
        assert {member.date_time[0] for member in kept.infolist()} == {1980}


@pytest.mark.parametrize("file", MODEL_FILES, ids=lambda file: "/".join(file.parts[-4:]))
def test_models_need_only_numpy_and_the_standard_library(file: Path) -> None:
    """Sample models for AWS's images import only NumPy,
    because the images guarantee nothing else.
    """
    own = {sibling.stem for sibling in file.parent.glob("*.py")}
    allowed = own | {"numpy", "triton_python_backend_utils"} | set(sys.stdlib_module_names)
    if file.parts[-4] == "story":
        allowed.add("tokenizers")  # its app uses an image of its own
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    imported = {
        alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
    }
    imported |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= allowed
