"""Data capture, asynchronous inference, metrics settings, the network, and grants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from cdk_apps import (
    ENVIRONMENT,
    add_ensemble,
    add_many,
    add_repository,
    flat,
    make_app,
    make_stack,
    only,
    only_variant,
    policies,
    resources,
    statement_list,
    statements,
    synthesize,
    warnings,
)

from constructs_triton import (
    AsyncInferenceConfig,
    DataCapture,
    MetricsConfig,
    TritonImage,
    TritonVariant,
    TritonVpcEndpoints,
)
from constructs_triton_core.errors import InvalidValueError


def config(template: dict[str, Any]) -> dict[str, Any]:
    return only(template, "AWS::SageMaker::EndpointConfig")


def caller_statements(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the statements of the role ``Caller`` by their action."""
    found = statement_list(template, "Caller")
    return {str(statement["Action"]): statement for statement in found}


def make_caller(stack: cdk.Stack) -> iam.Role:
    return iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))


# Data capture.


def test_data_capture_with_its_grants(stack: cdk.Stack, path: Path) -> None:
    """The settings are in the configuration; the role may write below the
    prefix and use both keys.
    """
    bucket = s3.Bucket(stack, "Bucket", encryption=s3.BucketEncryption.KMS)
    key = kms.Key(stack, "Key")
    capture = DataCapture(
        bucket=bucket,
        prefix="captured",
        initial_sampling_percentage=20,
        capture_modes=["InputAndOutput"],
        encryption_key=key,
        csv_content_types=["text/csv"],
    )
    add_ensemble(stack, path, data_capture=capture)

    template = synthesize(stack)

    rendered = config(template)["DataCaptureConfig"]
    assert flat(rendered.pop("DestinationS3Uri")).endswith("/captured")
    assert rendered.pop("KmsKeyId") == stack.resolve(key.key_arn)
    assert rendered == {
        "EnableCapture": True,
        "InitialSamplingPercentage": 20,
        "CaptureOptions": [{"CaptureMode": "InputAndOutput"}],
        "CaptureContentTypeHeader": {
            "JsonContentTypes": ["application/json"],
            "CsvContentTypes": ["text/csv"],
        },
    }
    found = statements(template)
    assert flat(found["WriteDataCapture"]["Resource"]).endswith(".Arn>/captured/*")
    assert len(found["EncryptDataCapture"]["Resource"]) == 2


def topics(name: Any) -> Any:
    """Make the settings of an asynchronous endpoint that name a topic, with the bucket."""
    return lambda bucket: AsyncInferenceConfig(bucket=bucket, include_inference_response_in=[name])


BAD_FEATURES: list[tuple[str, Any, str]] = [
    (
        "share",
        lambda b: DataCapture(bucket=b, initial_sampling_percentage=101),
        "from 0 to 100 percent",
    ),
    ("misspelt topic", topics("SUCCESS_TOPIC"), "did you mean"),
    ("unset topic", topics("SUCCESS_NOTIFICATION_TOPIC"), "set success_topic, or"),
    ("unknown topic", topics("X"), "write one of them"),
    ("error topic", topics("ERROR_NOTIFICATION_TOPIC"), "set error_topic"),
    (
        "topic",
        topics("SUCCESS_NOTIFICATION_TOPIC"),
        'the topic of "SUCCESS_NOTIFICATION_TOPIC" is not set',
    ),
    ("modes", lambda b: DataCapture(bucket=b, capture_modes=[]), "must be some of Input, Output"),
    ("whole bucket", lambda b: DataCapture(bucket=b, prefix=""), "must not be empty"),
    ("slash", lambda b: DataCapture(bucket=b, prefix="/x/"), 'write "x"'),
    (
        "parameters",
        lambda b: DataCapture(bucket=b, json_content_types=["application/json; charset=utf-8"]),
        "a content type without parameters",
    ),
    (
        "concurrency",
        lambda b: AsyncInferenceConfig(bucket=b, max_concurrent_invocations_per_instance=0),
        "from 1 to 1000",
    ),
    (
        "frequency",
        lambda _: MetricsConfig(metric_publish_frequency=cdk.Duration.seconds(20)),
        "must be 10, 30, 60, 120, 180, 240, 300 seconds, got 20",
    ),
]


@pytest.mark.parametrize(
    ("make", "message"), [row[1:] for row in BAD_FEATURES], ids=[row[0] for row in BAD_FEATURES]
)
def test_values_that_sagemaker_would_refuse(stack: cdk.Stack, make: Any, message: str) -> None:
    """A value that SageMaker rejects raises an error when it is created."""
    with pytest.raises(InvalidValueError, match=message):
        make(s3.Bucket(stack, "Bucket"))


# Asynchronous inference.


def test_async_inference_with_its_grants(stack: cdk.Stack, path: Path) -> None:
    """The configuration has outputs, topics and concurrency,
    and the role has permissions for them.
    """
    bucket = s3.Bucket(stack, "Bucket")
    success = sns.Topic(stack, "Success")
    error = sns.Topic(stack, "Error", master_key=kms.Key(stack, "Key"))
    add_ensemble(
        stack,
        path,
        async_inference=AsyncInferenceConfig(
            bucket=bucket,
            success_topic=success,
            error_topic=error,
            include_inference_response_in=["SUCCESS_NOTIFICATION_TOPIC"],
            max_concurrent_invocations_per_instance=4,
        ),
    )

    template = synthesize(stack)

    rendered = config(template)["AsyncInferenceConfig"]
    output = rendered["OutputConfig"]
    assert flat(output["S3OutputPath"]).endswith("/async/output")
    assert flat(output["S3FailurePath"]).endswith("/async/failure")
    assert output["NotificationConfig"] == {
        "SuccessTopic": {"Ref": stack.resolve(success.topic_arn)["Ref"]},
        "ErrorTopic": {"Ref": stack.resolve(error.topic_arn)["Ref"]},
        "IncludeInferenceResponseIn": ["SUCCESS_NOTIFICATION_TOPIC"],
    }
    assert rendered["ClientConfig"] == {"MaxConcurrentInvocationsPerInstance": 4}
    assert "RoutingConfig" not in only_variant(template)

    found = statements(template)
    assert flat(found["ReadAsyncInput"]["Resource"]).endswith("/async/input/*")
    assert flat(found["WriteAsyncOutput"]["Resource"]).endswith("/async/output/*")
    assert flat(found["WriteAsyncFailure"]["Resource"]).endswith("/async/failure/*")
    assert len(found["TellAsyncTopics"]["Resource"]) == 2
    assert found["EncryptAsyncMessages"]["Action"] == ["kms:Decrypt", "kms:GenerateDataKey"]


def test_async_callers_write_requests_and_read_results(stack: cdk.Stack, path: Path) -> None:
    """The grant allows the call and its three prefixes; a real-time endpoint raises an error."""
    caller = make_caller(stack)
    queue = AsyncInferenceConfig(bucket=s3.Bucket(stack, "Bucket"))
    endpoint = add_ensemble(stack, path, async_inference=queue)

    endpoint.grant_invoke_async(caller)

    granted = caller_statements(synthesize(stack))
    upload = str(["s3:AbortMultipartUpload", "s3:PutObject"])
    assert set(granted) == {"sagemaker:InvokeEndpointAsync", upload, "s3:GetObject"}
    assert flat(granted[upload]["Resource"]).endswith("/async/input/*")

    with pytest.raises(
        InvalidValueError, match="needs an asynchronous endpoint; set async_inference"
    ):
        add_ensemble(make_stack(), path).grant_invoke_async(caller)


# Features that multi-model endpoints do not support.


def test_multi_model_endpoint_warns_of_what_aws_does_not_list(stack: cdk.Stack, path: Path) -> None:
    """Data capture, asynchronous inference and a routing strategy are each
    annotated with their code.
    """
    bucket = s3.Bucket(stack, "Bucket")
    add_many(
        stack,
        path,
        data_capture=DataCapture(bucket=bucket),
        async_inference=AsyncInferenceConfig(bucket=bucket),
        routing_strategy="RANDOM",
    )
    text = "\n".join(warnings(stack))
    for name in ("data-capture", "async", "routing"):
        assert f"[ack: constructs-triton:multi-model-{name}-undocumented]" in text


def test_enhanced_metrics_are_not_for_multi_model_endpoints(stack: cdk.Stack, path: Path) -> None:
    """Multi-model endpoints refuse enhanced metrics, but accept a publish frequency."""
    frequency = MetricsConfig(metric_publish_frequency=cdk.Duration.seconds(10))
    add_many(stack, path, metrics_config=frequency)
    assert config(synthesize(stack))["MetricsConfig"] == {"MetricPublishFrequencyInSeconds": 10}
    with pytest.raises(
        InvalidValueError, match="enable_enhanced_metrics: not supported on multi-model"
    ):
        add_many(make_stack(), path, metrics_config=MetricsConfig(enable_enhanced_metrics=True))


def test_detailed_observability_has_no_metrics_of_triton(path: Path) -> None:
    """AWS's image serves no /metrics on port 8080, so a request for them is a warning."""
    detailed = MetricsConfig(enable_detailed_observability=True)
    code = "detailed-observability-without-triton"
    own = TritonImage.from_registry("example.com/own:1", triton_version="26.05")
    cases: list[tuple[MetricsConfig, dict[str, Any], bool]] = [
        (detailed, {}, True),
        (MetricsConfig(enable_detailed_observability=False), {}, False),
        (detailed, {"container_metrics": True}, False),
        (detailed, {"image": own}, False),
    ]
    for metrics, more, is_warned in cases:
        stack = make_stack()
        add_ensemble(stack, path, metrics_config=metrics, **more)
        assert (code in str(warnings(stack))) is is_warned


def test_chosen_ami_is_compared_with_the_image(stack: cdk.Stack, path: Path) -> None:
    """An AMI for CUDA 12 with an image of CUDA 13 is a warning that names the right one."""
    add_ensemble(stack, path, inference_ami_version="al2-ami-sagemaker-inference-gpu-3-1")
    assert "or set it to al2023-ami-sagemaker-inference-gpu-4-1" in str(warnings(stack))


def test_shadow_tests_are_for_real_time_endpoints(stack: cdk.Stack, path: Path) -> None:
    """An asynchronous endpoint cannot have a shadow variant."""
    asynchronous = AsyncInferenceConfig(bucket=s3.Bucket(stack, "Bucket"))
    shadow = TritonVariant(variant_name="next")
    with pytest.raises(InvalidValueError, match="not supported together with async_inference"):
        add_ensemble(stack, path, async_inference=asynchronous, shadow_variant=shadow)


# Grants.


def test_tenants_may_call_their_own_models_only(stack: cdk.Stack, path: Path) -> None:
    """A model is allowed with any digest; names and patterns become one condition
    on the target model.
    """
    caller = make_caller(stack)
    endpoint = add_many(stack, path)
    endpoint.grant_invoke(caller, target_models=["other", "shared-*", "tenant-a/*"])
    granted = caller_statements(synthesize(stack))["sagemaker:InvokeEndpoint"]
    assert granted["Condition"] == {
        "StringLike": {"sagemaker:TargetModel": ["other-????????.tar.gz", "shared-*", "tenant-a/*"]}
    }


def test_any_action_can_be_granted(stack: cdk.Stack, path: Path) -> None:
    """``grant`` allows the given actions on this endpoint only."""
    caller = make_caller(stack)
    endpoint = add_ensemble(stack, path)
    endpoint.grant(caller, "sagemaker:DescribeEndpoint")
    granted = caller_statements(synthesize(stack))["sagemaker:DescribeEndpoint"]
    assert granted["Resource"] == stack.resolve(endpoint.endpoint_arn)


def test_target_models_need_a_multi_model_endpoint(stack: cdk.Stack, path: Path) -> None:
    """A single-model endpoint, an empty list and a string raise errors."""
    caller = make_caller(stack)
    with pytest.raises(InvalidValueError, match="only multi-model endpoints support it"):
        add_ensemble(stack, path, "One").grant_invoke(caller, target_models=["pipeline"])
    many = add_many(stack, path)
    empty: list[str] = []
    for given in (empty, "other"):
        with pytest.raises(InvalidValueError, match="must be a list of models"):
            many.grant_invoke(caller, target_models=given)


def test_streaming_is_not_granted_on_multi_model_endpoints(stack: cdk.Stack, path: Path) -> None:
    """The streaming call has no TargetModel, so multi-model endpoints raise an error."""
    caller = make_caller(stack)
    add_ensemble(stack, path, "One").grant_invoke_with_response_stream(caller)
    (actions,) = caller_statements(synthesize(stack))
    assert actions == "['sagemaker:InvokeEndpoint', 'sagemaker:InvokeEndpointWithResponseStream']"
    with pytest.raises(InvalidValueError, match="do not support response streaming"):
        add_many(make_stack(), path).grant_invoke_with_response_stream(caller)


# The network.


def test_isolated_subnets_without_a_route_to_s3_warn(path: Path) -> None:
    """Models are downloaded through the VPC, and TritonVpcEndpoints adds the missing route."""
    without = make_stack()
    add_isolated(without, path, isolated_vpc(without))
    assert routes(without) == []
    assert NO_ROUTE in str(warnings(without))

    with_routes = make_stack()
    vpc = isolated_vpc(with_routes)
    TritonVpcEndpoints(with_routes, "Routes", vpc=vpc, runtime_access=True)
    add_isolated(with_routes, path, vpc)
    assert routes(with_routes) == ["Gateway", "Interface"]
    assert NO_ROUTE not in str(warnings(with_routes))

    with_own = make_stack()
    gateway = ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.S3)
    add_isolated(with_own, path, isolated_vpc(with_own, gateway_endpoints={"S3": gateway}))
    assert routes(with_own) == ["Gateway"]
    assert NO_ROUTE not in str(warnings(with_own))


NO_ROUTE = "[ack: constructs-triton:vpc-without-route-to-s3]"
ISOLATED = ec2.SubnetType.PRIVATE_ISOLATED


def isolated_vpc(stack: cdk.Stack, **options: Any) -> ec2.Vpc:
    """A VPC that has only isolated subnets."""
    subnets = [ec2.SubnetConfiguration(name="own", subnet_type=ISOLATED)]
    return ec2.Vpc(stack, "Vpc", max_azs=2, nat_gateways=0, subnet_configuration=subnets, **options)


def add_isolated(stack: cdk.Stack, path: Path, vpc: ec2.Vpc) -> None:
    """An endpoint in the isolated subnets of a VPC."""
    subnets = ec2.SubnetSelection(subnet_type=ISOLATED)
    add_ensemble(stack, path, vpc=vpc, vpc_subnets=subnets, enable_network_isolation=True)


def routes(stack: cdk.Stack) -> list[str]:
    """The types of the VPC endpoints of a stack."""
    found = resources(synthesize(stack), "AWS::EC2::VPCEndpoint").values()
    return sorted(route["Properties"]["VpcEndpointType"] for route in found)


# Manners.


def test_role_given_to_two_endpoints(stack: cdk.Stack, path: Path) -> None:
    """Each endpoint adds its own policy in its own stack, without a dependency cycle."""
    app = make_app()
    roles = cdk.Stack(app, "Roles", env=ENVIRONMENT)
    serving = cdk.Stack(app, "Serving", env=ENVIRONMENT)
    role = iam.Role(roles, "Own", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    bucket = s3.Bucket(serving, "Bucket")
    for name in ("A", "B"):
        capture = DataCapture(bucket=bucket, prefix=name)
        add_ensemble(serving, path, name, role=role, data_capture=capture)

    template = app.synth().get_stack_artifact(serving.artifact_id).template

    attached = policies(template)
    assert len(attached) == 2
    for model in resources(template, "AWS::SageMaker::Model").values():
        assert set(model["DependsOn"]) & set(attached)


def test_key_vpc_and_repository_of_another_stack(path: Path) -> None:
    """Cross-stack references are those of the CDK, and nested stacks work too."""
    app = make_app()
    base = cdk.Stack(app, "Base", env=ENVIRONMENT)
    serving = cdk.Stack(app, "Serving", env=ENVIRONMENT)
    endpoint = add_many(
        cdk.NestedStack(serving, "Nested"),
        add_repository(base, path),
        vpc=ec2.Vpc(base, "Vpc", max_azs=1),
        encryption_key=kms.Key(base, "Key"),
    )
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    count.scale_on_gpu_utilization("Gpu")

    stack = app.synth().get_stack_artifact(serving.artifact_id)

    assert base.artifact_id in [dependency.id for dependency in stack.dependencies]
    assert resources(stack.template, "AWS::CloudFormation::Stack")


def test_tags_are_on_every_resource_that_supports_them(stack: cdk.Stack, path: Path) -> None:
    """Tags of the CDK are on all resources; by default there are none."""
    endpoint = add_ensemble(stack, path)
    cdk.Tags.of(endpoint).add("team", "vision")
    template = synthesize(stack)
    for resource_type in ("Model", "EndpointConfig", "Endpoint"):
        assert only(template, f"AWS::SageMaker::{resource_type}")["Tags"] == [
            {"Key": "team", "Value": "vision"}
        ]


def test_outputs_are_created_on_request(stack: cdk.Stack, path: Path) -> None:
    """The name and ARN are outputs, exported if a prefix is given."""
    endpoint = add_ensemble(stack, path)
    assert "Outputs" not in stack.resolve(stack.node.try_find_child("Outputs") or {})
    endpoint.export_outputs(export_name_prefix="shop")
    outputs = synthesize(stack)["Outputs"].values()
    assert {output["Export"]["Name"]: output["Value"] for output in outputs} == {
        "shop-endpoint-name": stack.resolve(endpoint.cfn_endpoint.attr_endpoint_name),
        "shop-endpoint-arn": stack.resolve(endpoint.cfn_endpoint.attr_endpoint_arn),
    }


def test_features_accept_tokens(path: Path) -> None:
    """Prefixes, shares, counts, durations and settings may be parameters of the template."""
    stack = make_stack(None)
    text = cdk.CfnParameter(stack, "Text").value_as_string
    number = cdk.CfnParameter(stack, "Number", type="Number").value_as_number
    bucket = s3.Bucket.from_bucket_name(stack, "Bucket", text)
    add_ensemble(
        stack,
        path,
        data_capture=DataCapture(bucket=bucket, prefix=text, initial_sampling_percentage=number),
        async_inference=AsyncInferenceConfig(
            bucket=bucket, input_prefix=text, max_concurrent_invocations_per_instance=number
        ),
        metrics_config=MetricsConfig(metric_publish_frequency=cdk.Duration.seconds(number)),
        variant_instance_provision_timeout=cdk.Duration.seconds(number),
    )
    rendered = config(synthesize(stack))
    assert rendered["DataCaptureConfig"]["InitialSamplingPercentage"] == {"Ref": "Number"}
    assert rendered["MetricsConfig"] == {"MetricPublishFrequencyInSeconds": {"Ref": "Number"}}
    assert flat(rendered["DataCaptureConfig"]["DestinationS3Uri"]) == "s3://<Text>/<Text>"


def test_a_marker_for_a_generated_name_is_refused(stack: cdk.Stack, path: Path) -> None:
    """Only constructs of the CDK understand it; the template would not synthesize."""
    marker = cdk.PhysicalName.GENERATE_IF_NEEDED
    with pytest.raises(InvalidValueError, match=r"endpoint_name: .* write a name of your own"):
        add_ensemble(stack, path, endpoint_name=marker)
