"""Models for which the bundled server would wait forever are rejected before it loads them."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_tools.local.server.local_model import refuse_known_hangs
from constructs_triton_tools.local.server.server import _expect_literal
from triton_model_check.model_config.target import Target

CONFIG = 'backend: "python"\n'
PACKED = CONFIG + (
    'parameters { key: "EXECUTION_ENV_PATH" value { string_value: '
    '"$$TRITON_MODEL_DIRECTORY/env.tar.gz" } }\n'
)


def _model(folder: Path, config: str = CONFIG, *, code: bool = True) -> Path:
    (folder / "m" / "1").mkdir(parents=True)
    (folder / "m" / "config.pbtxt").write_text(config)
    if code:
        (folder / "m" / "1" / "model.py").touch()
    return folder


def test_a_python_model_without_its_file_is_named(tmp_path: Path) -> None:
    """With the version folder and the file; the same model with the file passes."""
    with pytest.raises(
        LocalEndpointError,
        match=r"m/1: Python model file not found in \"1/model.py\"; add 1/model.py",
    ):
        refuse_known_hangs(_model(tmp_path / "bad", code=False), Target(), (3, 11))
    refuse_known_hangs(_model(tmp_path / "good"), Target(), (3, 11))


def test_a_name_that_a_shell_splits_is_named(tmp_path: Path) -> None:
    """The Python backend starts a model in a shell, and waits for what has not started."""
    repository = _model(tmp_path)
    (repository / "m").rename(repository / "my model")
    with pytest.raises(LocalEndpointError, match=r'the folder name "my model" splits .*"my_model"'):
        refuse_known_hangs(repository, Target("sagemaker-multi-model"), (3, 11))


def test_a_folder_for_temporary_files_that_a_shell_splits_is_named() -> None:
    """The server's own folder is there, so no model could start."""
    with pytest.raises(LocalEndpointError, match=r"/my tmp: .*' ' splits .*set TMPDIR"):
        _expect_literal(Path("/my tmp/constructs-triton-1"))
    _expect_literal(Path("/tmp/constructs-triton-1"))


def test_a_packed_environment_of_another_python_is_named(tmp_path: Path) -> None:
    """The stub embeds one Python version; an environment of that version passes."""
    repository = _model(tmp_path, PACKED)
    with tarfile.open(repository / "m" / "env.tar.gz", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("lib/python3.10/os.py"), io.BytesIO())
    with pytest.raises(
        LocalEndpointError, match=r"m/config.pbtxt: EXECUTION_ENV_PATH .* Python 3\.10, .*--python"
    ):
        refuse_known_hangs(repository, Target(), (3, 11))
    refuse_known_hangs(repository, Target(), (3, 10))
