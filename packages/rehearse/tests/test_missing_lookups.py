"""Rehearsals of folders whose templates have stand-ins for values that were not looked up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_assembly import write_assembly

from cdk_rehearse import rehearse
from constructs_triton_core.errors import TemplateError

pytestmark = pytest.mark.e2e

LOOKUP = "ssm:account=123456789012:parameterName=/team/type:region=us-east-1"


def parameter(kind: str) -> dict[str, Any]:
    """A parameter of a type that SSM refuses."""
    properties = {"Type": kind, "Value": "1"}
    return {"Parameter": {"Type": "AWS::SSM::Parameter", "Properties": properties}}


TOPIC = {"Topic": {"Type": "AWS::SNS::Topic"}}


def synthesized(folder: Path, resources: dict[str, Any], **missing: Any) -> Path:
    """Write an assembly in which the CDK has noted these lookups as missing."""
    write_assembly(folder, resources)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["missing"] = [missing]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.mark.parametrize(
    ("resources", "props"),
    [
        (parameter("DUMMY"), {}),
        (parameter("dummy1a"), {"dummyValue": ["dummy1a", "dummy1b"]}),
        (parameter("dummy-value-for-/team/type"), {"dummyValue": "dummy-value-for-/team/type"}),
    ],
)
def test_failure_on_a_stand_in_is_unknown(
    tmp_path: Path, resources: dict[str, Any], props: dict[str, Any]
) -> None:
    """A value that was not looked up is named with the command, as OLD and as NEW."""
    folder = synthesized(tmp_path / "app", resources, key=LOOKUP, props=props)
    for old, new in ((None, folder), (folder, None)):
        with pytest.raises(TemplateError, match=f"{LOOKUP} has not been looked up") as refused:
            rehearse(old, new, failures="none", orders=1)
        assert "npx cdk synth" in str(refused.value)


def test_stand_in_that_changes_nothing_is_no_obstacle(tmp_path: Path) -> None:
    """An app with a missing lookup is rehearsed if the simulated account takes its stand-in."""
    props = {"dummyValue": "dummy-value-for-/team/name"}
    folder = synthesized(tmp_path / "app", TOPIC, key="ssm:/team/name", props=props)
    assert rehearse(None, folder, failures="none", orders=1).status == {"S": "CREATE_COMPLETE"}
