"""The errors of templates that the CDK did not write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hostile_checkout import write_hostile_checkout

from cdk_rehearse import rehearse


def _template(path: Path, *attributes: str) -> Path:
    table: dict[str, Any] = {
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"} for name in attributes
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }
    path.parent.mkdir(exist_ok=True)
    body = {"Resources": {"Orders": {"Type": "AWS::DynamoDB::Table", "Properties": table}}}
    path.write_text(json.dumps(body), encoding="utf-8")
    return path


def test_template_of_others_gets_the_errors_of_cfn_lint(tmp_path: Path) -> None:
    """An unused attribute is an error with the rule, unless the deployed template has it too."""
    right = _template(tmp_path / "right.json", "id")
    wrong = _template(tmp_path / "wrong.json", "id", "unused")
    (problem,) = rehearse(None, wrong, failures="none", orders=1).errors
    assert (problem.code, problem.path) == ("rehearse-template-error", "Orders")
    assert problem.message.startswith("E3039: ")
    assert rehearse(None, right, failures="none", orders=1).errors == []
    assert rehearse(wrong, wrong, failures="none", orders=1).errors == []


def test_template_of_the_cdk_is_left_to_its_own_validation(tmp_path: Path) -> None:
    """The template of a cloud assembly was validated at synth, with the same rules."""
    wrong = _template(tmp_path / "cdk.out" / "Shop.template.json", "id", "unused")
    (wrong.parent / "manifest.json").write_text("{}", encoding="utf-8")
    assert rehearse(None, wrong, failures="none", orders=1).errors == []


def test_settings_of_the_current_folder_run_no_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ``.cfnlintrc`` of a checkout names rules, which are modules, and files to write."""
    marker = write_hostile_checkout(tmp_path)
    wrong = _template(tmp_path / "wrong.json", "id", "unused")
    monkeypatch.chdir(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    (problem,) = rehearse(None, wrong.name, failures="none", orders=1).errors
    assert problem.code == "rehearse-template-error"
    assert not marker.exists()
    assert {path.name for path in tmp_path.iterdir()} == before
