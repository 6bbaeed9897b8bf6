"""Every example synthesizes, shows its capability, and passes the linters."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cdk_apps import flattened, only, resources, warnings
from example_apps import (
    CAPABILITIES,
    EXAMPLES,
    SECURE,
    example,
    read_validation,
    rule_packs,
    run_app,
)
from syrupy.assertion import SnapshotAssertion
from template_lint import lint

import constructs_triton
from constructs_triton.testing import TritonTemplateExtension

# Resources of the library are compared in full, and those of the CDK only by their type.
POLICIES = ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
SHOWN = ("AWS::SageMaker::", "AWS::ApplicationAutoScaling::", *POLICIES, "Custom::Triton")
PUBLIC_SOURCES = {"__future__", "pathlib", "aws_cdk", "constructs", "constructs_triton"}


def outline(templates: Mapping[str, Any]) -> dict[str, Any]:
    """Return the templates with the properties of this library's resources, and the types of all
    others.

    An intrinsic function is one string, as a reader would write it:
    ``arn:<AWS::Partition>:s3:::name``.
    """
    return {
        stack: {
            name: flattened(each) if each["Type"].startswith(SHOWN) else each["Type"]
            for name, each in template["Resources"].items()
        }
        for stack, template in templates.items()
    }


@pytest.mark.parametrize("name", CAPABILITIES)
def test_template_is_as_recorded(name: str, snapshot: SnapshotAssertion) -> None:
    """The template of each example is as recorded."""
    assert outline(example(name).stable_templates) == snapshot(
        extension_class=TritonTemplateExtension
    )


@pytest.mark.parametrize("name", CAPABILITIES)
def test_stable_template_has_no_digest(name: str) -> None:
    """No digest of an asset is left in the stable templates,
    also not in the build of a pipeline.
    """
    raw, stable = (
        json.dumps(dict(each)) for each in (example(name).templates, example(name).stable_templates)
    )
    digests = set(re.findall(r"([0-9a-f]{32,})\.(?:tar|zip|json)", raw))
    assert digests
    assert [each for each in digests if each in stable] == []


@pytest.mark.parametrize("name", CAPABILITIES)
def test_example_uses_only_public_names(name: str) -> None:
    """An example begins with a docstring and imports only the package itself."""
    tree = ast.parse((EXAMPLES / name / "app.py").read_text())
    assert ast.get_docstring(tree)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {node.module for node in imports} <= PUBLIC_SOURCES
    ours = {
        alias.name for node in imports if node.module == "constructs_triton" for alias in node.names
    }
    assert ours
    assert ours <= set(constructs_triton.__all__)


def test_every_capability_has_an_example() -> None:
    """Each example is in the guide."""
    guide = (EXAMPLES.parent / "docs" / "examples" / "examples.md").read_text()
    assert [name for name in CAPABILITIES if f"`examples/{name}`" not in guide] == []


# Linters.


@pytest.mark.parametrize("name", CAPABILITIES)
def test_cdk_validation_finds_nothing(name: str) -> None:
    """The CDK's own rules find nothing, not even a warning such as an unknown instance type."""
    found = [
        each
        for plugin in example(name).validation["pluginReports"]
        for each in plugin["violations"]
    ]
    assert found == []


def is_of_cdk_pipelines(finding: Any) -> bool:
    """Return whether a finding is a style hint inside the deploy actions that
    CDK Pipelines writes.
    """
    return finding.rule.id == "E3703" and "Prefer using Fn::Sub over Fn::Join" in finding.message


@pytest.mark.parametrize("name", CAPABILITIES)
def test_cfn_lint_finds_nothing(name: str) -> None:
    """cfn-lint finds nothing, except W3005 and one style hint about CDK Pipelines."""
    found = [each for template in example(name).templates.values() for each in lint(template)]
    assert [str(each) for each in found if not is_of_cdk_pipelines(each)] == []


def test_secure_examples_have_a_reason_for_every_finding(tmp_path: Path) -> None:
    """The secure examples pass AwsSolutions, HIPAA and NIST 800-53; another example does not."""
    for name in SECURE:
        example(
            name
        )  # synthesis fails for a finding that is not acknowledged in the example's code
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        run_app("basic", tmp_path, rule_packs())
    reports = {each["pluginName"]: each for each in read_validation(tmp_path)["pluginReports"]}
    failed = {name for name, each in reports.items() if each["conclusion"] == "failure"}
    assert failed == {"AwsSolutions", "HIPAA.Security", "NIST.800.53.R5"}


# What the recorded templates do not show: properties of the CDK's own resources, and warnings.


def test_alarms_of_a_rollback_are_created_first() -> None:
    """The endpoint of ``blue_green_rollback`` refers to its alarms,
    and none of them to the endpoint.
    """
    found = example("blue_green_rollback")
    (endpoint,) = resources(found.template, "AWS::SageMaker::Endpoint")
    assert f'"{endpoint}"' not in json.dumps(resources(found.template, "AWS::CloudWatch::Alarm"))


def test_composed_function_knows_endpoint_and_index() -> None:
    """The function of ``composition`` has the names of what it may use."""
    function = only(example("composition").templates["Shop"], "AWS::Lambda::Function")
    assert sorted(function["Environment"]["Variables"]) == ["MODEL_INDEX", "SENTIMENT_ENDPOINT"]


def test_components_wake_on_failed_invocations() -> None:
    """The alarms of ``inference_components`` watch for requests that found no copy."""
    alarms = resources(example("inference_components").template, "AWS::CloudWatch::Alarm").values()
    assert {each["Properties"]["MetricName"] for each in alarms} == {"NoCapacityInvocationFailures"}


def test_stand_ins_of_plans_are_a_warning() -> None:
    """``compiled_plans`` says how to compile its plans."""
    (warning,) = warnings(example("compiled_plans").app)
    assert "the plans are stand-ins: run `constructs-triton compile`" in warning
