"""The names of files that SageMaker refuses, and those that it accepts."""

from __future__ import annotations

import pytest

from triton_model_check.model_repository.uncompressed.names import name_problems


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("net/a\0b", "has a NUL"),
        ("net//model.onnx", "an empty name"),
        ("net/../model.onnx", '".."'),
        ("net/ /model.onnx", "an empty name"),
        ("net/1/", "an empty name"),
        (f"net/{'é' * 128}", "more than 255 bytes"),
        (f"net/{'/'.join(['a' * 100] * 11)}", "S3 allows 1024"),
        ("net/config.pbtxt/model.onnx", "is below a file"),
    ],
)
def test_names_that_sagemaker_refuses(path: str, problem: str) -> None:
    """Each rule of S3ModelDataSource has a message with the path and a fix."""
    (found,) = name_problems(["net/config.pbtxt", path], "models/files/net/0/")
    assert problem in found
    assert "; rename" in found or "; shorten" in found


def test_valid_names_are_accepted() -> None:
    """Spaces, dots and letters beyond ASCII are valid in a name."""
    assert (
        name_problems(["net/1/my model.v2.onnx", "net/1/größe", f"net/{'a' * 255}", "a/..b/c"])
        == []
    )
