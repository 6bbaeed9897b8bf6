"""Which model a file in an editor belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest

from triton_model_check.editor.model_files import model_file

ROOT = Path("/shop/models")


@pytest.mark.parametrize(
    "name", ["m/config.pbtxt", "m/configs/small.pbtxt", "m/1/model.py", "m/2/tokens.py"]
)
def test_file_of_a_model(name: str) -> None:
    """The configuration, one of ``configs``, and the sources of a version."""
    found = model_file(ROOT / name, lambda path: path == ROOT / "m" / "config.pbtxt")
    assert found is not None
    assert (found.repository, found.model, found.name) == (ROOT, "m", name)


@pytest.mark.parametrize(
    "path",
    ["/shop/app.py", "/shop/m/model.py", "/shop/0001/tool.py", "/config.pbtxt", "/graph.pbtxt"],
)
def test_file_of_no_model(path: str) -> None:
    """Other sources, other texts of protobuf, and a configuration in no folder."""
    assert model_file(Path(path), lambda _: False) is None


def test_path_is_made_plain() -> None:
    """What an editor writes with ``..`` is the same file."""
    found = model_file(ROOT / "other" / ".." / "m" / "config.pbtxt", lambda _: False)
    assert found is not None
    assert found.path == ROOT / "m" / "config.pbtxt"
