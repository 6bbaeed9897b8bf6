"""The fixes of the repositories that a real server was given to load:
each corrects only its finding.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fix_contract import add_comments, assert_ends, broken_promises

from triton_model_check.model_config.target import Platform, Target

FOLDERS = [Path(__file__).parent / name for name in ("oracle", "oracle_onnx")]
VERDICTS: dict[str, dict[str, Any]] = {
    f"{folder.name}/{name}": case
    for folder in FOLDERS
    for name, case in json.loads((folder / "verdicts.json").read_text(encoding="utf-8")).items()
}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All cases, each in the folder of its server."""
    from backports import tarfile

    directory = tmp_path_factory.mktemp("cases")
    for folder in FOLDERS:
        (packed,) = folder.glob("cases.tar.*")
        with tarfile.open(packed) as archive:
            archive.extractall(directory / folder.name, filter="data")
    return directory


@pytest.mark.parametrize("name", sorted(VERDICTS))
def test_fix_keeps_its_promises(unpacked: Path, name: str) -> None:
    """Each fix alone keeps its promises, also with comments;
    all together end after a few rounds.
    """
    case = VERDICTS[name]
    platform: Platform = "sagemaker" if case["mode"] == "sme" else "sagemaker-multi-model"
    target = Target(platform=platform, gpu_count=0, default_model=case.get("default_model"))
    root = unpacked / name
    assert broken_promises(root, target) == []
    add_comments(root)
    assert broken_promises(root, target) == []
    assert_ends(root, target)
