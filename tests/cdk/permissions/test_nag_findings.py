"""The findings of cdk-nag that this library's resources raise, and their acknowledgements."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import cdk_nag
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_scheduler as scheduler
from cdk_apps import (
    ENVIRONMENT,
    add_endpoint,
    add_ensemble,
    add_many,
    add_repository,
    make_app,
    write_repository,
)
from constructs import Construct

from constructs_triton import (
    AsyncInferenceConfig,
    CompressionType,
    ContainerInferenceComponent,
    CoreDump,
    DataCapture,
    InstanceType,
    ModelSource,
    OffSwitch,
    ServingImage,
    TritonComponentEndpoint,
    TritonImage,
    TritonInferenceComponent,
    TritonModelRepository,
    TritonVpcEndpoints,
)
from constructs_triton.cdk import DeployTimeFunctions, acknowledge_nag_findings

Findings = Mapping[str, set[str]]
IMAGE = TritonImage.dlc("25.04")
G5 = InstanceType.of("ml.g5.12xlarge")


class Base(cdk.Stack):
    """A network, a bucket and a role of the user, and repositories,
    all for endpoints of another stack.
    """

    def __init__(self, scope: Construct, id: str, *, models: Path) -> None:
        super().__init__(scope, id, env=ENVIRONMENT)
        self.vpc = ec2.Vpc(self, "Vpc", max_azs=2)
        TritonVpcEndpoints(self, "Routes", vpc=self.vpc, runtime_access=True)
        self.key = kms.Key(self, "Key", enable_key_rotation=True)
        self.own_bucket = s3.Bucket(self, "OwnBucket")
        DeployTimeFunctions.of(self).configure(vpc=self.vpc)
        self.repository = add_repository(
            self,
            models,
            encryption_key=self.key,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        self.archives = add_repository(self, models, "Archives")


class Endpoints(cdk.Stack):
    """Each type of endpoint with the features that need wildcards."""

    def __init__(self, scope: Construct, id: str, *, base: Base, models: Path) -> None:
        super().__init__(scope, id, env=ENVIRONMENT)
        self.base = base
        self.served: dict[str, Any] = {"instance_type": G5, "image": IMAGE}
        self.add_guarded(base.archives)
        self.add_adopted(base.archives)
        self.add_files(add_repository(self, models, "Files", prune_after=cdk.Duration.days(30)))
        self.add_many(base.repository)
        self.add_component(base.archives)
        role = iam.Role(self, "OwnRole", assumed_by=iam.AccountRootPrincipal())
        role.add_to_policy(
            iam.PolicyStatement(sid="LoadModels", actions=["s3:GetObject"], resources=["*"])
        )

    def add_guarded(self, repository: TritonModelRepository) -> None:
        """Add an endpoint that scales, captures, and is rolled back by an alarm."""
        endpoint = add_ensemble(
            self,
            repository,
            "Guarded",
            vpc=self.base.vpc,
            encryption_key=self.base.key,
            scaling_guard=True,
            data_capture=DataCapture(bucket=self.base.own_bucket),
            core_dump=CoreDump(bucket=self.base.own_bucket),
            endpoint_name="guarded",
            **self.served,
        )
        scaling = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)
        scaling.scale_on_gpu_utilization("Gpu")
        never = cloudwatch.AlarmRule.from_boolean(False)
        alarm = cloudwatch.CompositeAlarm(
            self, "Alarm", composite_alarm_name="any", alarm_rule=never
        )
        endpoint.add_rollback_alarms(alarm)

    def add_adopted(self, repository: TritonModelRepository) -> None:
        """Add an endpoint that exists before the stack and is deleted with it."""
        add_ensemble(
            self,
            repository,
            "Adopted",
            encryption_key=self.base.key,
            endpoint_name="old",
            adopt_existing=True,
            removal_policy=cdk.RemovalPolicy.DESTROY,
            **self.served,
        )

    def add_files(self, repository: TritonModelRepository) -> None:
        """Add an asynchronous endpoint of models without an archive."""
        add_endpoint(
            self,
            repository,
            "FilesEndpoint",
            model="other",
            compression_type=CompressionType.NONE,
            async_inference=AsyncInferenceConfig(bucket=self.base.own_bucket),
            **self.served,
        )

    def add_many(self, repository: TritonModelRepository) -> None:
        """Add a multi-model endpoint that a schedule turns off."""
        night = OffSwitch(self, "Night")
        night.add_schedule("Daily", off=scheduler.ScheduleExpression.cron(hour="20"))
        add_many(
            self,
            repository,
            "Many",
            endpoint_name="many",
            log_retention=logs.RetentionDays.ONE_WEEK,
            off_switch=night,
            **self.served,
        )

    def add_component(self, repository: TritonModelRepository) -> None:
        """Add an endpoint with a Triton component and one of another container."""
        endpoint = TritonComponentEndpoint(
            self, "Shared", min_instance_count=1, max_instance_count=2, **self.served
        )
        TritonInferenceComponent(
            self,
            "Component",
            endpoint=endpoint,
            model_repository=repository,
            model="other",
            min_memory=cdk.Size.gibibytes(4),
            number_of_accelerator_devices=0,
        )
        ContainerInferenceComponent(
            self,
            "Other",
            endpoint=endpoint,
            image=ServingImage.from_registry("123456789012.dkr.ecr.eu-west-1.amazonaws.com/vllm:1"),
            model_data=ModelSource.from_s3_prefix(self.base.own_bucket, "weights/"),
            min_memory=cdk.Size.gibibytes(4),
            number_of_accelerator_devices=0,
        )


@cache
def find(path: Path, *, is_acknowledged: bool, is_staged: bool) -> Findings:
    """The rules of AWS Solutions and NIST 800-53 that cdk-nag finds violated,
    and the resources of each.
    """
    path /= f"{is_acknowledged}-{is_staged}"
    app = make_app(path / "cdk.out")
    models = write_repository(path / "models")
    scope = cdk.Stage(app, "Prod") if is_staged else app
    if is_acknowledged:
        acknowledge_nag_findings(app)
    base = Base(scope, "Base", models=models)
    Endpoints(scope, "Endpoints", base=base, models=models)

    cdk.Validations.of(app).add_plugins(
        cdk_nag.AwsSolutionsChecks(app), cdk_nag.NIST80053R5Checks(app)
    )
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()

    findings: dict[str, set[str]] = {}
    report = json.loads((path / "cdk.out" / "validation-report.json").read_text())
    for plugin in report["pluginReports"]:
        for violation in plugin["violations"]:
            violating = violation["violatingConstructs"]
            findings[violation["ruleName"]] = {found["constructPath"] for found in violating}
    return findings


def of_solutions(findings: Findings, *, are_own: bool) -> set[str]:
    """The resources with findings of AWS Solutions: those that the app declares itself,
    or the others.
    """
    own_names = ("/Vpc/", "/OwnBucket/", "/OwnRole/")
    chosen = set()
    for rule, paths in findings.items():
        if not rule.startswith("AwsSolutions"):
            continue
        for path in paths:
            is_own = any(name in path for name in own_names)
            if is_own is are_own:
                chosen.add(path)
    return chosen


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the apps, which all tests of this file share."""
    return tmp_path_factory.mktemp("nag")


def test_every_finding_of_the_library_has_a_reason(folder: Path) -> None:
    """One call leaves no finding of the library's resources, also across stacks and stages."""
    plain = find(folder, is_acknowledged=False, is_staged=False)
    assert len(of_solutions(plain, are_own=False)) > 10
    for is_staged in (False, True):
        known = find(folder, is_acknowledged=True, is_staged=is_staged)
        assert of_solutions(known, are_own=False) == set()
        # The library leaves to the user what a property removes.
        rules = {rule for rule, paths in known.items() if any("/Sync/" in path for path in paths)}
        assert rules == {
            "NIST.800.53.R5-CloudWatchLogGroupEncrypted",
            "NIST.800.53.R5-LambdaConcurrency",
        }


def test_findings_of_other_resources_stay(folder: Path) -> None:
    """Findings of the user's resources stay, also of a statement with the id
    of one of the library.
    """
    before = find(folder, is_acknowledged=False, is_staged=False)
    after = find(folder, is_acknowledged=True, is_staged=False)

    own = of_solutions(after, are_own=True)

    assert own == of_solutions(before, are_own=True)
    assert {path.split("/")[1] for path in own} == {"Vpc", "OwnBucket", "OwnRole"}
