"""The user's own files in messages of a container."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_container import fake_server

from constructs_triton_tools.local.gateway.inference_components import LocalVariant
from constructs_triton_tools.local.page.user_files import UserFiles
from constructs_triton_tools.local.sources.specs import ContainerSpec, VariantSpec

TRACE = """JSONDecodeError: Expecting value

At:
  /usr/lib/python3.11/json/decoder.py(337): decode
  {folder}/m/1/model.py(9): execute
"""


@pytest.mark.parametrize(
    ("source", "expected"), [(Path("models"), "models/m/1/model.py"), (None, "m/1/model.py")]
)
def test_traceback_names_the_own_file(tmp_path: Path, source: Path | None, expected: str) -> None:
    """The innermost line of the user's code is named by its path in the repository."""
    spec = VariantSpec(
        "v", ContainerSpec("m", "", "s3://b/m.tar.gz", archive=Path("m.tar.gz"), source=source)
    )
    server = fake_server(tmp_path, container=spec.container)
    files = UserFiles.of(LocalVariant(spec, server, None))
    for folder in ("/opt/ml/model", str(server.models_directory.parent / "model")):
        text = TRACE.format(folder=folder)
        assert files.place(text) == f"{expected}, line 9"
        assert (
            files.name(text)
            == f"JSONDecodeError: Expecting value\n\nAt:\n  {expected}(9): execute\n"
        )
    assert files.place("no traceback") == ""
