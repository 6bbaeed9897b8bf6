"""The examples in the messages of type checks exist."""

from __future__ import annotations

import ast
import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3

import constructs_triton as library
from constructs_triton.cdk.validation.written_values import with_value
from constructs_triton_core.declared_values import declared_values
from constructs_triton_tools import planning
from constructs_triton_tools.planning.capacity import Plan
from triton_model_check.model_repository.builder import ModelRepositoryBuilder

EXAMPLE = re.compile(r"[\w.\[]+\(|[A-Z]\w+\.[A-Z_]+$")
FOLDER = Path(library.__file__).parent / "cdk"
NAMES: dict[str, Any] = {
    "endpoint": library.TritonEndpoint,
    "aws_cloudwatch_actions": actions,
    "events": events,
    "targets": targets,
    "plan": Plan,
    "ModelRepositoryBuilder": ModelRepositoryBuilder,
}


def examples() -> Iterator[tuple[str, str]]:
    """Return the place and the code of each example in a type check."""
    tables: tuple[type, ...] = (
        library.EndpointOptions,
        library.ComponentEndpointOptions,
        library.InferenceComponentOptions,
    )
    for entry in (each for table in tables for each in declared_values(table).values()):
        if EXAMPLE.match(entry.example):
            yield entry.name, entry.example
    for path in sorted(FOLDER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts = node.elts if isinstance(node, ast.Tuple) and len(node.elts) == 2 else []
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "check_has":
                parts = node.args
            last = parts[-1] if parts else None
            if (
                isinstance(last, ast.Constant)
                and isinstance(last.value, str)
                and EXAMPLE.match(last.value)
            ):
                yield f"{path.name}:{last.lineno}", last.value


def named(reference: ast.expr) -> Any:
    """Return the object that a dotted name refers to."""
    if isinstance(reference, ast.Attribute):
        return getattr(named(reference.value), reference.attr)
    assert isinstance(reference, ast.Name)
    if reference.id in NAMES:
        return NAMES[reference.id]
    if reference.id in ("cloudwatch", "ec2", "iam", "kms", "logs", "s3", "scheduler", "sns", "sqs"):
        return getattr(cdk, f"aws_{reference.id}")
    for module in (
        library,
        planning,
        cdk,
        appscaling,
        cloudwatch,
        actions,
        kms,
        logs,
        s3,
        datetime,
    ):
        if hasattr(module, reference.id):
            return getattr(module, reference.id)
    raise AssertionError(f"nothing is called {reference.id}")


FOUND = list(examples())


@pytest.mark.parametrize("text", [text for _, text in FOUND], ids=[place for place, _ in FOUND])
def test_example_exists(text: str) -> None:
    """Each class, factory and member in an example exists."""
    tree = ast.parse(text, mode="eval")
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for call in calls:
        assert callable(named(call)), text
    assert calls or named(tree.body) is not None


def test_examples_are_found() -> None:
    """The search finds examples in a table, in a constant and in a call."""
    texts = {text for _, text in FOUND}
    assert {
        "Deployment.blue_green_canary()",
        'kms.Key.from_key_arn(self, "Key", "...")',
        "Duration.days(30)",
        "Unit.MILLISECONDS",
    } <= texts
    assert "endpoint.metric_model_latency()" in texts


@pytest.mark.parametrize(
    ("example", "value", "expected"),
    [
        ('InstanceType.of("ml.g5.xlarge")', "ml.c6i.large", 'InstanceType.of("ml.c6i.large")'),
        ("Duration.seconds(600)", 90, "Duration.seconds(90)"),
        ("Duration.millis(300)", 0.5, "Duration.millis(500)"),
        ("Duration.millis(300)", 90, "Duration.millis(90)"),
        (
            'kms.Key.from_key_arn(self, "Key", "...")',
            "alias/models",
            'kms.Key.from_lookup(self, "Key", alias_name="alias/models")',
        ),
        (
            'kms.Key.from_key_arn(self, "Key", "...")',
            "0a1b",
            'kms.Key.from_key_arn(self, "Key", "arn:aws:kms:REGION:ACCOUNT:key/0a1b")',
        ),
        (
            "ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS)",
            ["subnet-1"],
            "ec2.SubnetSelection(subnet_filters=[ec2.SubnetFilter.by_ids(['subnet-1'])])",
        ),
        (
            's3.Bucket.from_bucket_name(self, "Bucket", "...")',
            "s3://b/out/",
            's3.Bucket.from_bucket_name(self, "Bucket", "b"), and set its prefix or key to "out/"',
        ),
        (
            'kms.Key.from_key_arn(self, "Key", "...")',
            "arn:k",
            'kms.Key.from_key_arn(self, "Key", "arn:k")',
        ),
        ('InferenceAmi.of("...")', "al2", 'InferenceAmi.of("al2")'),
        ("Deployment.blue_green_canary()", "canary", "Deployment.blue_green_canary()"),
        ("DataCapture(bucket=bucket)", "s3://b/captured", "DataCapture(bucket=bucket)"),
        ("Duration.seconds(600)", True, "Duration.seconds(600)"),
        ("True", "yes", "True"),
    ],
)
def test_example_has_the_value_of_the_user(example: str, value: object, expected: str) -> None:
    """The example of a type check contains the string or the number that was given."""
    assert with_value(example, value) == expected
