"""The schedule of docs/guides/batch.md: what it asks of SageMaker, and what its role may do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cdk_apps import flat, only, statement_list
from guide_apps import programs_of, templates_of
from service_shapes import check_call


@pytest.fixture
def template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The template of the page's app."""
    monkeypatch.chdir(tmp_path)
    (code,) = [each for each in programs_of("batch.md") if "scheduler.Schedule(" in each]
    return templates_of(code, tmp_path)["Batch"]


def test_request_is_one_that_sagemaker_takes(template: Any) -> None:
    """The schedule's input is a valid CreateTransformJob,
    with the ID of an attempt and the model's name.
    """
    target = only(template, "AWS::Scheduler::Schedule")["Target"]
    assert flat(target["Arn"]).endswith(":scheduler:::aws-sdk:sagemaker:createTransformJob")
    sent = flat(target["Input"])
    assert ".ModelName>" in sent
    named = re.sub(r"<Model\w+\.ModelName>", "a-model", sent)
    request = json.loads(named.replace("<aws.scheduler.execution-id>", "d32c"))
    assert request["TransformJobName"] == "digits-d32c"
    assert check_call("sagemaker", "CreateTransformJob", request) == []


def test_role_may_start_these_jobs_only(template: Any) -> None:
    """The role of the schedule has one permission, for jobs of one name."""
    (found,) = [
        each for each in statement_list(template) if "CreateTransformJob" in flat(each["Action"])
    ]
    assert found["Action"] == "sagemaker:CreateTransformJob"
    assert flat(found["Resource"]).endswith(":transform-job/digits-*")
    assert "PassRole" not in json.dumps(template)
