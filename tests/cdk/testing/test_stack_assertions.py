"""The assertions about stacks, and what their messages say."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ecr_assets as ecr_assets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sagemaker as sagemaker
from cdk_apps import add_ensemble, add_many, make_app, make_stack, write_repository

from constructs_triton import (
    CompressionType,
    InstanceType,
    TritonEnsembleEndpoint,
    TritonEnvironment,
    TritonImage,
)
from constructs_triton.testing import (
    assert_endpoint,
    assert_no_replacement,
    assert_scales,
    replacement_assertion,
    stable_template,
)
from constructs_triton_core.errors import InvalidValueError, MissingDependencyError

G5 = "ml.g5.xlarge"
ROLE = "arn:aws:iam::123456789012:role/triton"


def add_pipeline(
    stack: cdk.Stack, path: Path, id: str = "Pipeline", **options: Any
) -> TritonEnsembleEndpoint:
    """Add an endpoint of the ensemble ``pipeline``, with image 26.05 unless it is given."""
    return add_ensemble(stack, path, id, **{"image": TritonImage.dlc("26.05"), **options})


def add_component(stack: cdk.Stack, path: Path) -> None:
    """Add an endpoint with an inference component, as resources of CloudFormation."""
    variant = sagemaker.CfnEndpointConfig.ProductionVariantProperty(
        variant_name="Hosts", instance_type=G5
    )
    config = sagemaker.CfnEndpointConfig(
        stack, "HostsConfig", production_variants=[variant], execution_role_arn=ROLE
    )
    endpoint = sagemaker.CfnEndpoint(
        stack,
        "HostsEndpoint",
        endpoint_config_name=config.attr_endpoint_config_name,
        endpoint_name="hosts",
    )
    container = sagemaker.CfnModel.ContainerDefinitionProperty(
        image="example.com/triton:26.05-py3",
        environment={"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "shift"},
    )
    model = sagemaker.CfnModel(
        stack, "ShiftModel", execution_role_arn=ROLE, primary_container=container
    )
    sagemaker.CfnInferenceComponent(
        stack,
        "Shift",
        endpoint_name=endpoint.attr_endpoint_name,
        inference_component_name="shift",
        variant_name="Hosts",
        specification=sagemaker.CfnInferenceComponent.InferenceComponentSpecificationProperty(
            model_name=model.attr_model_name
        ),
    )


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> cdk.Stack:
    """A stack with three endpoints: of an ensemble that scales, of several models,
    and of components.
    """
    path = write_repository(tmp_path_factory.mktemp("models"))
    stack = cdk.Stack(make_app(), "Shop")
    pipeline = add_pipeline(stack, path)
    scaling = pipeline.auto_scale_instance_count(min_capacity=1, max_capacity=5)
    scaling.scale_on_gpu_utilization("Gpu", target_utilization_percent=60)
    scaling.scale_on_invocations_per_instance("Calls", max_requests_per_second=10)
    add_many(
        stack,
        path,
        "Catalog",
        instance_type=InstanceType.of("ml.g5.2xlarge"),
        environment=TritonEnvironment(log_verbose=True),
        endpoint_name="catalog",
    )
    add_component(stack, path)
    return stack


def failure(check: Any, *arguments: Any, **options: Any) -> str:
    """Return the message of an assertion that fails."""
    with pytest.raises(AssertionError) as caught:
        check(*arguments, **options)
    return str(caught.value)


def test_endpoints_are_as_described(shop: cdk.Stack) -> None:
    """Each type of endpoint is found by its name or by the path of its construct."""
    assert_endpoint(shop)
    assert_endpoint(
        shop,
        name="Pipeline",
        models=["pipeline"],
        instance_types={G5},
        image_version="26.05",
        initial_variant_weights={"AllTraffic": 1},
        initial_instance_counts={"AllTraffic": 1},
    )
    assert_endpoint(shop, name="Pipeline", models="pipeline", variants="AllTraffic")
    assert_endpoint(
        shop,
        name="catalog",
        models=["pipeline", "other"],
        environment={
            "SAGEMAKER_TRITON_LOG_VERBOSE": "true",
            "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": None,
        },
    )
    assert_endpoint(shop, name="hosts", models=["shift"], image_version="26.05", variants=["Hosts"])


def test_differences_of_the_nearest_endpoint_are_listed(shop: cdk.Stack) -> None:
    """The message names the endpoint with the fewest differences, and each of them."""
    message = failure(
        assert_endpoint,
        shop,
        models=["pipeline", "others"],
        instance_types="ml.g5.2xlarge",
        image_version="25.09",
        initial_variant_weights={"AllTraffic": 9},
        initial_instance_counts={"AllTraffic": 2, "Blue": 1},
        environment={
            "SAGEMAKER_TRITON_LOG_VERBOS": "true",
            "SAGEMAKER_TRITON_PING_MODE": "live",
            "SAGEMAKER_TRITON_LOG_VERBOSE": None,
        },
    )
    assert message.splitlines() == [
        'Shop: endpoint "catalog" differs',
        '  image_version: expected "25.09", got "26.05"',
        '  initial_variant_weights["AllTraffic"]: expected 9, got 1',
        '  initial_instance_counts["AllTraffic"]: expected 2, got 1',
        '  initial_instance_counts["Blue"]: expected 1, but it is not set; it has "AllTraffic"',
        "  environment[\"SAGEMAKER_TRITON_LOG_VERBOS\"]: expected 'true', but it is not set; "
        'did you mean "SAGEMAKER_TRITON_LOG_VERBOSE"?',
        "  environment[\"SAGEMAKER_TRITON_LOG_VERBOSE\"]: must not be set, got 'true'",
        '  models: "others" is missing; did you mean "other"?',
        '  models: "other" is not expected',
    ]
    unknown = failure(assert_endpoint, shop, name="katalog")
    assert unknown.startswith(
        'Shop: has no endpoint "katalog"; its endpoints are: "PipelineC660917D", "catalog"'
    )


def test_version_that_is_a_number_is_refused(shop: cdk.Stack) -> None:
    """The numbers 25.1 and 25.10 are equal, the versions are not."""
    with pytest.raises(
        InvalidValueError, match=r'must be a string, got 25\.1; write it as "YY.MM"'
    ):
        assert_endpoint(shop, image_version=25.10)  # type: ignore[arg-type]  # the mistake


def test_numbers_of_variants_are_weights_or_counts(shop: cdk.Stack) -> None:
    """A mapping of variants is refused, because its numbers can be meant as either."""
    with pytest.raises(
        InvalidValueError, match=r"variants: must be names, got {'AllTraffic': 2}; set init"
    ):
        assert_endpoint(shop, variants={"AllTraffic": 2})


def test_models_of_another_program_are_not_known(stack: cdk.Stack, tmp_path: Path) -> None:
    """A template without the models of its endpoint is reported."""
    container = sagemaker.CfnModel.ContainerDefinitionProperty(
        image="triton:1", model_data_url="s3://b/k"
    )
    model = sagemaker.CfnModel(stack, "Model", execution_role_arn=ROLE, primary_container=container)
    variant = sagemaker.CfnEndpointConfig.ProductionVariantProperty(
        variant_name="V", instance_type=G5, model_name=model.attr_model_name
    )
    config = sagemaker.CfnEndpointConfig(stack, "Config", production_variants=[variant])
    sagemaker.CfnEndpoint(stack, "Endpoint", endpoint_config_name=config.attr_endpoint_config_name)
    message = failure(assert_endpoint, stack, models=["digits"])
    assert 'models: expected "digits", but they are known only after the deployment' in message


def test_scaling_is_as_described(shop: cdk.Stack) -> None:
    """Customized and predefined metrics are found, with targets and limits."""
    assert_scales(shop, on="GPUUtilization", target=60, between=(1, 5), of="AllTraffic")
    for name in ("InvocationsPerInstance", "SageMakerVariantInvocationsPerInstance"):
        assert_scales(shop, on=name, target=300)


def test_scaling_without_a_metric_names_those_of_the_stack(
    shop: cdk.Stack, stack: cdk.Stack
) -> None:
    """An assertion without ``on`` lists the metrics that the stack scales on."""
    with pytest.raises(
        InvalidValueError, match=r"its policies scale on .*GPUUtilization.*; write for"
    ):
        assert_scales(shop, target=60)
    cdk.CfnResource(stack, "Other", type="AWS::SNS::Topic")
    with pytest.raises(InvalidValueError, match="it has no scaling policy"):
        assert_scales(stack, between=(1, 5))


def test_step_scaling_has_the_metric_of_its_alarm(stack: cdk.Stack) -> None:
    """A step scaling policy scales on the metric of the alarm that starts it."""
    endpoint = TritonEnsembleEndpoint.from_endpoint_attributes(
        stack, "E", endpoint_name="bert", is_asynchronous=True
    )
    count = endpoint.auto_scale_instance_count(min_capacity=0, max_capacity=4)
    count.scale_on_backlog("Backlog", target_backlog_per_instance=5)
    assert_scales(stack, on="HasBacklogWithoutCapacity", between=(0, 4))
    assert_scales(stack, on="ApproximateBacklogSizePerInstance", target=5)


def test_differences_of_the_nearest_policy_are_listed(shop: cdk.Stack, stack: cdk.Stack) -> None:
    """The message names another metric, another variant, or each value that differs."""
    values = failure(assert_scales, shop, on="GPUUtilization", target=70, between=(1, 8))
    assert values.splitlines() == [
        (
            'Shop: the policy on "GPUUtilization" of '
            "endpoint/PipelineC660917D/variant/AllTraffic differs"
        ),
        "  target: expected 70, got 60",
        "  between: expected (1, 8), got (1, 5)",
    ]

    multiple = failure(assert_scales, shop, on="GPUUtilization", target=30)
    assert multiple.endswith(
        "expected 30, got 60; SageMaker adds up GPUs, and 30 percent of each of 2 is 60"
    )

    metric = failure(assert_scales, shop, on="GpuUtilization")
    assert metric.splitlines()[:2] == [
        'Shop: no policy scales on "GpuUtilization"; did you mean "GPUUtilization"?',
        "  endpoint/PipelineC660917D/variant/AllTraffic: GPUUtilization at 60, between 1 and 5",
    ]

    variant = failure(assert_scales, shop, on="GPUUtilization", of="Blue")
    assert 'nothing called "Blue" is scaled; "AllTraffic"' in variant

    cdk.CfnResource(stack, "Topic", type="AWS::SNS::Topic")
    assert "has no scaling policy" in failure(assert_scales, stack, on="GPUUtilization")


def test_replacements_are_reported(path: Path) -> None:
    """A new name replaces the endpoint and what refers to it;
    a renamed construct is deleted and created.
    """

    def template(id: str = "Pipeline", **options: Any) -> dict[str, Any]:
        stack = make_stack()
        endpoint = add_pipeline(stack, path, id, **options)
        scaling = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=5)
        scaling.scale_on_gpu_utilization("Gpu")
        return stable_template(stack)

    before = template()
    assert_no_replacement(before, template(image=TritonImage.dlc("25.09")))

    named = failure(assert_no_replacement, before, template(endpoint_name="shop"))
    _, of_endpoint, of_target, *_ = named.splitlines()
    assert (
        'Endpoint PipelineC660917D would be replaced: EndpointName was not set and is "shop"'
        in of_endpoint
    )
    assert "ResourceId refers to PipelineC660917D, which would be replaced" in of_target

    moved = failure(assert_no_replacement, before, template("Line"))
    assert "AWS::IAM::Role PipelineRole" in moved
    assert "and LineRole" in moved
    assert "created: the id of its construct has changed" in moved

    types = {resource["Type"] for resource in before["Resources"].values()}
    assert_no_replacement(before, {}, allowed=types)
    assert "would be deleted" in failure(assert_no_replacement, before, {})


def test_snapshot_is_compared_with_a_stack(stack: cdk.Stack, tmp_path: Path) -> None:
    """The stack before the change can be a snapshot, or a template of a cloud assembly."""
    sagemaker.CfnEndpoint(stack, "E", endpoint_config_name="c", endpoint_name="old")
    snapshot = tmp_path / "test_template.json"
    snapshot.write_text(json.dumps(stable_template(stack)))
    changed = make_stack()
    sagemaker.CfnEndpoint(changed, "E", endpoint_config_name="c", endpoint_name="new")

    message = failure(assert_no_replacement, snapshot, changed)
    assert 'EndpointName was "old" and is "new"' in message

    written = Path(cdk.Stage.of(stack).synth().directory) / stack.template_file  # type: ignore[union-attr]
    assert_no_replacement(written, stack)

    with pytest.raises(InvalidValueError, match="cannot be read"):
        assert_no_replacement(tmp_path / "none.json", stack)


def test_own_types_and_missing_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of type is a replacement, an unknown type has no schema,
    and cfn-lint may be missing.
    """

    def template(resource_type: str, **properties: Any) -> dict[str, Any]:
        resource: dict[str, Any] = {"Type": resource_type}
        if properties:
            resource["Properties"] = properties
        return {"Resources": {"A": resource}}

    topic = template("AWS::SNS::Topic")
    changed = failure(assert_no_replacement, topic, template("AWS::SQS::Queue"))
    assert "its type was AWS::SNS::Topic and is AWS::SQS::Queue" in changed

    assert_no_replacement(template("Acme::Shop::Cart", Size=1), template("Acme::Shop::Cart"))

    replacement_assertion._create_only.cache_clear()
    monkeypatch.setitem(sys.modules, "cfnlint.schema", None)
    with pytest.raises(MissingDependencyError, match=r"constructs-triton\[testing\]"):
        assert_no_replacement(topic, topic)


def test_assets_of_other_constructs_have_stable_names(tmp_path: Path) -> None:
    """A function's code and version and a nested template have names,
    with the CDK's metadata or without.
    """
    code = tmp_path / "code"
    code.mkdir()

    def template(text: str, **context: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        (code / "index.py").write_text(text)
        stack = cdk.Stack(make_app(**context), "Shop")
        nested = cdk.NestedStack(stack, "Inner")
        function = lambda_.Function(
            nested,
            "Orders",
            runtime=lambda_.Runtime.PYTHON_3_13,
            handler="index.handler",
            code=lambda_.Code.from_asset(str(code)),
        )
        cdk.CfnOutput(nested, "Version", value=function.current_version.version)
        return stable_template(stack), stable_template(nested)

    of_the_command_line = {
        "aws:cdk:enable-path-metadata": True,
        "aws:cdk:enable-asset-metadata": True,
    }
    outer, inner = template("a = 1")

    assert template("a = 2", **of_the_command_line) == (outer, inner)
    assert "<template:" in json.dumps(outer)
    assert '"S3Key": "<asset:Inner/Orders>"' in json.dumps(inner)
    assert "BootstrapVersion" not in json.dumps(outer)


def test_files_and_images_have_stable_names(path: Path, tmp_path: Path) -> None:
    """A model that is served without an archive, and an image that the CDK builds, have names."""
    (tmp_path / "app").mkdir()

    def template(text: str) -> dict[str, Any]:
        model = path / "scale" / "1" / "model.py"
        model.write_text(f"{model.read_text()}# {text}\n")
        (tmp_path / "app" / "Dockerfile").write_text(f"FROM scratch\n# {text}")
        stack = cdk.Stack(make_app(), "Shop")
        add_pipeline(stack, path, compression_type=CompressionType.NONE)
        image = ecr_assets.DockerImageAsset(stack, "App", directory=str(tmp_path / "app"))
        cdk.CfnOutput(stack, "Uri", value=image.image_uri)
        return stable_template(stack, digests=True)

    before = template("a = 1")
    after = template("a = 2")

    text = json.dumps(before)
    assert ":<image:App>" in text
    assert "models/files/pipeline/<digest>/" in text
    old_digests = before["Digests"]
    new_digests = after["Digests"]
    changed = [name for name in old_digests if old_digests[name] != new_digests[name]]
    assert changed == ["<files:PipelineModels/Files-pipeline>", "<image:App>"]
    assert {**before, "Digests": {}} == {**after, "Digests": {}}


def test_stack_outside_an_app_and_unreadable_template(tmp_path: Path) -> None:
    """What cannot be synthesized or read is an error that says what to pass."""
    (tmp_path / "list.template.json").write_text("[]")
    with pytest.raises(InvalidValueError, match="must contain a JSON object, got list"):
        stable_template(tmp_path / "list.template.json")
    with pytest.raises(InvalidValueError, match="does not exist; pass a template that `npx cdk"):
        stable_template(tmp_path / "none.template.json")


@pytest.mark.parametrize(
    "helper", [stable_template, lambda app: assert_no_replacement(app, app), assert_endpoint]
)
def test_app_without_a_stack_is_refused(helper: Callable[[cdk.App], object]) -> None:
    """A helper that would see nothing says so, since its test could not fail."""
    with pytest.raises(InvalidValueError, match=r"the app: has no stack, .*; pass a stack"):
        helper(cdk.App())
