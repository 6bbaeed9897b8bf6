"""``check_repository``: the checks from Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from check_examples import write
from check_examples.repositories import HEAD, one

from constructs_triton_core.errors import InvalidValueError
from triton_model_check import check_repository
from triton_model_check.model_config.target import Target

_COUNT = "instance_group { count: -1 }"
_GRAPHDEF = 'platform: "tensorflow_graphdef"\n'


def test_findings_are_those_of_the_target(tmp_path: Path) -> None:
    """The target is a name or a value; ignore comments count, and nothing is printed."""
    files = {"m/config.pbtxt": _GRAPHDEF, "m/1/model.graphdef": "x"}
    models = write(
        {**files, **{f"n/{name}": text for name, text in _in_n().items()}}, tmp_path / "models"
    )
    newest, oldest = check_repository(models), check_repository(models, "kserve")
    assert "target-backend-removed" in {each.code for each in newest.errors}
    assert "target-backend-removed" not in {each.code for each in oldest.errors}
    assert check_repository(models, Target("server", image_version="23.05")).errors == ()
    assert check_repository(models, image_version="23.05").errors == ()
    assert [each.code for each in newest.ignored] == ["instance-count"]
    with pytest.raises(
        InvalidValueError, match='target: is unknown, got "kserv"; did you mean "kserve"'
    ):
        check_repository(models, "kserv")  # type: ignore[arg-type]


def _in_n() -> dict[str, str]:
    text = f"{HEAD}{_COUNT}  # triton-model-check: ignore[instance-count] a script replaces it\n"
    return {name.removeprefix("m/"): str(content) for name, content in one(text).items()}


def test_settings_are_read_only_if_asked(tmp_path: Path) -> None:
    """So that the result does not depend on where the program runs."""
    models = write(one(f"{HEAD}{_COUNT}\n"), tmp_path / "models")
    (tmp_path / "triton-model-check.toml").write_text('ignore = ["instance"]\n')
    assert [each.code for each in check_repository(models).warnings] == ["instance-count"]
    settled = check_repository(models, settings=tmp_path)
    assert (settled.findings, [each.code for each in settled.ignored]) == ((), ["instance-count"])


def test_import_loads_no_rule() -> None:
    """The function is imported when it is used, so the program starts as fast as without it."""
    code = (
        "import sys, triton_model_check; "
        "print([name for name in sys.modules if 'model_config' in name])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
