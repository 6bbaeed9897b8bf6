"""Every example synthesizes, shows its capability, and passes the linters."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from cdk_apps import flat, flattened, policies, resources, statements, warnings
from example_apps import (
    CAPABILITIES,
    EXAMPLES,
    SECURE,
    Example,
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
    """Return the templates with the properties of this library's resources, and the types of all others.

    An intrinsic function is one string, as a reader would write it: ``arn:<AWS::Partition>:s3:::name``.
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
    assert outline(example(name).stable_templates) == snapshot(extension_class=TritonTemplateExtension)


@pytest.mark.parametrize("name", CAPABILITIES)
def test_stable_template_has_no_digest(name: str) -> None:
    """No digest of an asset is left in the stable templates, also not in the build of a pipeline."""
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
    ours = {alias.name for node in imports if node.module == "constructs_triton" for alias in node.names}
    assert ours
    assert ours <= set(constructs_triton.__all__)


def test_every_capability_has_an_example() -> None:
    """The examples are those that the guide lists."""
    guide = (EXAMPLES.parent / "docs" / "examples" / "examples.md").read_text()
    assert sorted(PURPOSES) == CAPABILITIES
    assert [name for name in CAPABILITIES if f"`examples/{name}`" not in guide] == []


# Linters.


@pytest.mark.parametrize("name", CAPABILITIES)
def test_cdk_validation_finds_nothing(name: str) -> None:
    """The CDK's own rules find nothing, not even a warning such as an unknown instance type."""
    found = [each for plugin in example(name).validation["pluginReports"] for each in plugin["violations"]]
    assert found == []


def is_of_cdk_pipelines(finding: Any) -> bool:
    """Return whether a finding is a style hint inside the deploy actions that CDK Pipelines writes."""
    return finding.rule.id == "E3703" and "Prefer using Fn::Sub over Fn::Join" in finding.message


@pytest.mark.parametrize("name", CAPABILITIES)
def test_cfn_lint_finds_nothing(name: str) -> None:
    """cfn-lint finds nothing, except W3005 and one style hint about CDK Pipelines."""
    found = [each for template in example(name).templates.values() for each in lint(template)]
    assert [str(each) for each in found if not is_of_cdk_pipelines(each)] == []


def test_secure_examples_have_a_reason_for_every_finding(tmp_path: Path) -> None:
    """The secure examples pass AwsSolutions, HIPAA and NIST 800-53; another example does not."""
    for name in SECURE:
        example(name)  # synthesis fails for a finding that is not acknowledged in the example's code
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        run_app("basic", tmp_path, rule_packs())
    reports = {each["pluginName"]: each for each in read_validation(tmp_path)["pluginReports"]}
    failed = {name for name, each in reports.items() if each["conclusion"] == "failure"}
    assert failed == {"AwsSolutions", "HIPAA.Security", "NIST.800.53.R5"}


# The feature of each example.


def properties(found: Example, resource_type: str) -> list[dict[str, Any]]:
    return [
        each["Properties"] for t in found.templates.values() for each in resources(t, resource_type).values()
    ]


def the_only(found: Example, resource_type: str) -> dict[str, Any]:
    (result,) = properties(found, resource_type)
    return result


def configuration(found: Example) -> dict[str, Any]:
    return the_only(found, "AWS::SageMaker::EndpointConfig")


def basic_is_five_resources(found: Example) -> None:
    types = sorted(each["Type"] for each in found.template["Resources"].values())
    parts = ["Endpoint", "EndpointConfig", "Model"]
    own = ["AWS::IAM::ManagedPolicy", "AWS::IAM::Role"]
    assert types == [*own, *(f"AWS::SageMaker::{part}" for part in parts)]


def ensemble_is_served_by_name_and_scales_on_gpus(found: Example) -> None:
    environment = the_only(found, "AWS::SageMaker::Model")["PrimaryContainer"]["Environment"]
    assert environment["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] == "digits"
    policy = the_only(found, "AWS::ApplicationAutoScaling::ScalingPolicy")
    tracking = policy["TargetTrackingScalingPolicyConfiguration"]
    assert tracking["CustomizedMetricSpecification"]["MetricName"] == "GPUUtilization"


def multi_model_callers_have_their_own_models(found: Example) -> None:
    granted = {
        name[:4]: [model.partition("-")[0] for model in statement["Condition"]["StringLike"][key]]
        for name, policy in policies(found.template).items()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if (key := "sagemaker:TargetModel") in statement.get("Condition", {}).get("StringLike", {})
    }
    assert granted == {"Shop": ["sentiment"], "Pump": ["anomaly", "forecast"]}


def ab_test_splits_the_traffic(found: Example) -> None:
    variants = configuration(found)["ProductionVariants"]
    weights = {each["VariantName"]: each["InitialVariantWeight"] for each in variants}
    assert weights == {"current": 9, "candidate": 1}
    assert len(properties(found, "AWS::ApplicationAutoScaling::ScalableTarget")) == 2


def shadow_runs_another_image(found: Example) -> None:
    (shadow,) = configuration(found)["ShadowProductionVariants"]
    models = resources(found.template, "AWS::SageMaker::Model")
    images = {name: flat(each["Properties"]["PrimaryContainer"]["Image"]) for name, each in models.items()}
    other = images.pop(shadow["ModelName"]["Fn::GetAtt"][0])
    assert [image for image in images.values() if image != other]
    assert shadow["InitialVariantWeight"] == 0.5


def isolated_container_has_no_network(found: Example) -> None:
    model = the_only(found, "AWS::SageMaker::Model")
    assert model["EnableNetworkIsolation"] is True
    assert len(model["VpcConfig"]["Subnets"]) == 2
    assert "AWS::EC2::InternetGateway" not in str(found.template)


def kms_key_is_everywhere(found: Example) -> None:
    (key,) = resources(found.template, "AWS::KMS::Key")
    sentiment = next(
        each for each in properties(found, "AWS::SageMaker::EndpointConfig") if "DataCaptureConfig" in each
    )
    (variant,) = sentiment["ProductionVariants"]
    for place in (sentiment, sentiment["DataCaptureConfig"], variant["CoreDumpConfig"]):
        assert place["KmsKeyId"] == {"Fn::GetAtt": [key, "Arn"]}
    encrypted = statements(found.template)["EncryptArchives"]
    assert encrypted["Resource"] == {"Fn::GetAtt": [key, "Arn"]}


def async_fleet_goes_to_zero(found: Example) -> None:
    assert the_only(found, "AWS::ApplicationAutoScaling::ScalableTarget")["MinCapacity"] == 0
    policies = properties(found, "AWS::ApplicationAutoScaling::ScalingPolicy")
    assert {each["PolicyType"] for each in policies} == {"TargetTrackingScaling", "StepScaling"}


def blue_green_creates_its_alarms_first(found: Example) -> None:
    deployment = the_only(found, "AWS::SageMaker::Endpoint")["DeploymentConfig"]
    referred = {each["AlarmName"]["Ref"] for each in deployment["AutoRollbackConfiguration"]["Alarms"]}
    alarms = resources(found.template, "AWS::CloudWatch::Alarm")
    assert referred <= alarms.keys()
    assert any(each.startswith("DigitsAlarmsAllTrafficModelLatency") for each in referred)
    (endpoint,) = resources(found.template, "AWS::SageMaker::Endpoint")
    assert f'"{endpoint}"' not in json.dumps(alarms)
    routing = deployment["BlueGreenUpdatePolicy"]["TrafficRoutingConfiguration"]
    assert (routing["Type"], routing["CanarySize"]["Value"]) == ("CANARY", 10)


def existing_bucket_is_granted_by_prefix(found: Example) -> None:
    assert not resources(found.template, "AWS::S3::Bucket")
    granted = flat(statements(found.template)["LoadModels"]["Resource"])
    assert granted.endswith(":s3:::example-ml-platform/triton/catalog/*")


def stages_differ_in_size_alone(found: Example) -> None:
    counts = {
        stack.split("/")[1]: only_variant["InitialInstanceCount"]
        for stack, template in found.templates.items()
        for each in resources(template, "AWS::SageMaker::EndpointConfig").values()
        for only_variant in each["Properties"]["ProductionVariants"]
    }
    assert counts == {"Staging": 1, "Production": 4}


def composed_function_may_call_one_model(found: Example) -> None:
    shop = found.templates["Shop"]
    (function,) = resources(shop, "AWS::Lambda::Function").values()
    variables = function["Properties"]["Environment"]["Variables"]
    assert sorted(variables) == ["MODEL_INDEX", "SENTIMENT_ENDPOINT"]
    granted = {
        name[:7]: json.dumps(policy["Properties"]["PolicyDocument"])
        for name, policy in policies(shop).items()
    }
    assert '{"sagemaker:TargetModel": ["sentiment-????????.tar.gz"]}' in granted["Reviews"]
    assert "index.json" in granted["Reviews"]
    assert "sagemaker:InvokeEndpoint" in granted["Nightly"]


def called_model_is_loaded_beside_its_caller(found: Example) -> None:
    containers = [
        each["Properties"]["PrimaryContainer"]["Environment"]
        for each in resources(found.template, "AWS::SageMaker::Model").values()
    ]
    arguments = {
        each["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"]: each.get("SAGEMAKER_TRITON_ADDITIONAL_ARGS")
        for each in containers
    }
    assert arguments == {"moderation": "--load-model=scorer", "review": None}


def generating_models_stream(found: Example) -> None:
    models = resources(found.template, "AWS::SageMaker::Model").values()
    containers = [each["Properties"]["PrimaryContainer"]["Environment"] for each in models]
    names = {each["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] for each in containers}
    assert names == {"decoder", "story"}
    assert {each["SAGEMAKER_TRITON_INFERENCE_TYPE"] for each in containers} == {"generate_stream"}


def vllm_streams_on_a_gpu(found: Example) -> None:
    (model,) = resources(found.template, "AWS::SageMaker::Model").values()
    container = model["Properties"]["PrimaryContainer"]
    assert container["Environment"]["SAGEMAKER_TRITON_INFERENCE_TYPE"] == "generate_stream"
    assert "repository/triton-vllm" in flat(statements(found.template)["PullImage"]["Resource"])
    (variant,) = configuration(found)["ProductionVariants"]
    # The weights are a download of unknown size.
    assert variant["ContainerStartupHealthCheckTimeoutInSeconds"] == 3600
    assert variant["InferenceAmiVersion"] == "al2023-ami-sagemaker-inference-gpu-4-1"
    (policy,) = properties(found, "AWS::ApplicationAutoScaling::ScalingPolicy")
    tracked = policy["TargetTrackingScalingPolicyConfiguration"]["PredefinedMetricSpecification"]
    name = "SageMakerVariantConcurrentRequestsPerModelHighResolution"
    assert tracked == {"PredefinedMetricType": name}


def components_wake_from_zero(found: Example) -> None:
    (variant,) = configuration(found)["ProductionVariants"]
    assert "ModelName" not in variant
    assert variant["ManagedInstanceScaling"]["MinInstanceCount"] == 0
    targets = properties(found, "AWS::ApplicationAutoScaling::ScalableTarget")
    assert [(each["MinCapacity"], "RoleARN" in each) for each in targets] == [(0, False)] * 2
    alarms = properties(found, "AWS::CloudWatch::Alarm")
    assert {each["MetricName"] for each in alarms} == {"NoCapacityInvocationFailures"}


def pools_have_an_order_and_one_ami(found: Example) -> None:
    (variant,) = configuration(found)["ProductionVariants"]
    assert [(each["Priority"], each["InstanceType"]) for each in variant["InstancePools"]] == [
        (1, "ml.g6.2xlarge"),
        (2, "ml.g5.2xlarge"),
        (3, "ml.g4dn.2xlarge"),
    ]
    assert variant["InferenceAmiVersion"] == "al2023-ami-sagemaker-inference-gpu-4-1"
    (alarm,) = properties(found, "AWS::CloudWatch::Alarm")
    assert alarm["TreatMissingData"] == "breaching"


def each_gpu_has_its_plan(found: Example) -> None:
    (variant,) = configuration(found)["ProductionVariants"]
    types = [each["InstanceType"] for each in variant["InstancePools"]]
    assert types == ["ml.g5.xlarge", "ml.g4dn.xlarge"]
    assert not any("ModelNameOverride" in each for each in variant["InstancePools"])
    (warning,) = warnings(found.app)
    assert "the plans are stand-ins: run `constructs-triton compile`" in warning


def queue_waits_for_the_first_type_with_capacity(found: Example) -> None:
    async_fleet_goes_to_zero(found)
    (variant,) = configuration(found)["ProductionVariants"]
    types = [(each["Priority"], each["InstanceType"]) for each in variant["InstancePools"]]
    assert types == [(1, "ml.g6.xlarge"), (2, "ml.g5.xlarge")]
    assert (variant["VariantInstanceProvisionTimeoutInSeconds"], "InstanceType" in variant) == (1200, False)


def adopted_endpoint_is_updated_and_returned(found: Example) -> None:
    assert resources(found.template, "AWS::SageMaker::Endpoint") == {}
    (adopted,) = resources(found.template, "Custom::TritonAdoptedEndpoint").values()
    assert adopted["Properties"]["EndpointName"] == "digits-2025-11-02"
    assert adopted["DeletionPolicy"] == "Delete"


PURPOSES: dict[str, Callable[[Example], None]] = {
    "adopted": adopted_endpoint_is_updated_and_returned,
    "ab_test": ab_test_splits_the_traffic,
    "async_inference": async_fleet_goes_to_zero,
    "async_pools": queue_waits_for_the_first_type_with_capacity,
    "basic": basic_is_five_resources,
    "blue_green_rollback": blue_green_creates_its_alarms_first,
    "called_models": called_model_is_loaded_beside_its_caller,
    "compiled_plans": each_gpu_has_its_plan,
    "composition": composed_function_may_call_one_model,
    "ensemble": ensemble_is_served_by_name_and_scales_on_gpus,
    "existing_bucket": existing_bucket_is_granted_by_prefix,
    "generate": generating_models_stream,
    "generate_vllm": vllm_streams_on_a_gpu,
    "inference_components": components_wake_from_zero,
    "instance_pools": pools_have_an_order_and_one_ami,
    "kms": kms_key_is_everywhere,
    "multi_model": multi_model_callers_have_their_own_models,
    "pipelines_stage": stages_differ_in_size_alone,
    "shadow": shadow_runs_another_image,
    "vpc_isolation": isolated_container_has_no_network,
}


@pytest.mark.parametrize(
    ("name", "check"), PURPOSES.items(), ids=[check.__name__ for check in PURPOSES.values()]
)
def test_example_shows_its_capability(name: str, check: Callable[[Example], None]) -> None:
    """The template of each example contains the feature that it shows."""
    check(example(name))
