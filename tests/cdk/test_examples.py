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
    shown: dict[str, dict[str, Any]] = {}
    for stack, template in templates.items():
        shown[stack] = {}
        for name, resource in template["Resources"].items():
            is_own = resource["Type"].startswith(SHOWN)
            shown[stack][name] = flattened(resource) if is_own else resource["Type"]
    return shown


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
    raw = json.dumps(dict(example(name).templates))
    stable = json.dumps(dict(example(name).stable_templates))

    digests = set(re.findall(r"([0-9a-f]{32,})\.(?:tar|zip|json)", raw))

    assert digests
    assert [digest for digest in digests if digest in stable] == []


@pytest.mark.parametrize("name", CAPABILITIES)
def test_example_uses_only_public_names(name: str) -> None:
    """An example begins with a docstring and imports only the package itself."""
    tree = ast.parse((EXAMPLES / name / "app.py").read_text())
    assert ast.get_docstring(tree)

    imported: dict[str | None, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            imported.setdefault(node.module, set()).update(names)

    assert imported.keys() <= PUBLIC_SOURCES
    assert imported["constructs_triton"] <= set(constructs_triton.__all__)


def test_every_capability_has_an_example() -> None:
    """Each example is in the guide."""
    guide = (EXAMPLES.parent / "docs" / "examples" / "examples.md").read_text()
    assert [name for name in CAPABILITIES if f"`examples/{name}`" not in guide] == []


# Linters.


@pytest.mark.parametrize("name", CAPABILITIES)
def test_cdk_validation_finds_nothing(name: str) -> None:
    """The CDK's own rules find nothing, not even a warning such as an unknown instance type."""
    for plugin in example(name).validation["pluginReports"]:
        assert plugin["violations"] == []


def is_of_cdk_pipelines(finding: Any) -> bool:
    """Return whether a finding is a style hint inside the deploy actions that
    CDK Pipelines writes.
    """
    return finding.rule.id == "E3703" and "Prefer using Fn::Sub over Fn::Join" in finding.message


@pytest.mark.parametrize("name", CAPABILITIES)
def test_cfn_lint_finds_nothing(name: str) -> None:
    """cfn-lint finds nothing, except W3005 and one style hint about CDK Pipelines."""
    for template in example(name).templates.values():
        findings = lint(template)
        assert [str(finding) for finding in findings if not is_of_cdk_pipelines(finding)] == []


def test_secure_examples_have_a_reason_for_every_finding(tmp_path: Path) -> None:
    """The secure examples pass AwsSolutions, HIPAA and NIST 800-53; another example does not."""
    for name in SECURE:
        # The synthesis fails for a finding that is not acknowledged in the example's code.
        example(name)

    with pytest.raises(RuntimeError, match="ValidationFailed"):
        run_app("basic", tmp_path, rule_packs())
    reports = read_validation(tmp_path)["pluginReports"]
    failed = {report["pluginName"] for report in reports if report["conclusion"] == "failure"}
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
    metrics = {alarm["Properties"]["MetricName"] for alarm in alarms}
    assert metrics == {"NoCapacityInvocationFailures"}


def test_stand_ins_of_plans_are_a_warning() -> None:
    """``compiled_plans`` says how to compile its plans."""
    (warning,) = warnings(example("compiled_plans").app)
    assert "the plans are stand-ins: run `constructs-triton compile`" in warning
