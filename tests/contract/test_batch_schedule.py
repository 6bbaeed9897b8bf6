"""The schedule of docs/guides/batch.md: what it asks of SageMaker, and what its role may do."""

from __future__ import annotations

import json
import re
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from cdk_apps import flat, only, statement_list
from programs import PROJECT
from service_shapes import check_call


@pytest.fixture
def template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The template of the page's app."""
    (code,) = re.findall(
        r'^```python title="app.py"\n(.+?)^```', (PROJECT / "docs/guides/batch.md").read_text(), re.M | re.S
    )
    shutil.copytree(PROJECT / "assets" / "model_repositories" / "digits", tmp_path / "models")
    monkeypatch.chdir(tmp_path)
    app = partial(cdk.App, builtin_cloud_formation_validation=False, outdir=str(tmp_path / "cdk.out"))
    monkeypatch.setattr(cdk, "App", app)
    exec(compile(code, "batch.md", "exec"), {"__name__": "__main__"})
    written: dict[str, Any] = json.loads((tmp_path / "cdk.out" / "Batch.template.json").read_text())
    return written


def test_request_is_one_that_sagemaker_takes(template: dict[str, Any]) -> None:
    """The schedule's input is a valid CreateTransformJob, with the ID of an attempt and the model's name."""
    target = only(template, "AWS::Scheduler::Schedule")["Target"]
    assert flat(target["Arn"]).endswith(":scheduler:::aws-sdk:sagemaker:createTransformJob")
    sent = flat(target["Input"])
    assert ".ModelName>" in sent
    request = json.loads(
        re.sub(r"<Model\w+\.ModelName>", "a-model", sent).replace("<aws.scheduler.execution-id>", "d32c")
    )
    assert request["TransformJobName"] == "digits-d32c"
    assert check_call("sagemaker", "CreateTransformJob", request) == []


def test_role_may_start_these_jobs_only(template: dict[str, Any]) -> None:
    """The role of the schedule has one permission, for jobs of one name."""
    (found,) = [each for each in statement_list(template) if "CreateTransformJob" in flat(each["Action"])]
    assert found["Action"] == "sagemaker:CreateTransformJob"
    assert flat(found["Resource"]).endswith(":transform-job/digits-*")
    assert "PassRole" not in json.dumps(template)
