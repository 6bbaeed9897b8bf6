"""The endpoints: the CloudFormation resources of each type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from cdk_apps import (
    ENVIRONMENT,
    add_repository,
    flat,
    make_app,
    make_stack,
    only,
    policies,
    resources,
    statements,
    synthesize,
    warnings,
    write_model,
)
from syrupy.assertion import SnapshotAssertion

from constructs_triton import (
    InstanceType,
    ITritonEndpoint,
    TritonEndpoint,
    TritonEnsembleEndpoint,
    TritonEnvironment,
    TritonMultiModelEndpoint,
    TritonVariant,
)
from constructs_triton.testing import TritonTemplateExtension
from constructs_triton_core.errors import InvalidValueError, RepositoryError

GPU = InstanceType.of("ml.g5.xlarge")
CPU = InstanceType.of("ml.c5.xlarge")


def make_ensemble(stack: cdk.Stack, path: Path, **props: Any) -> TritonEnsembleEndpoint:
    options = {"instance_type": GPU, **props}
    repository = add_repository(stack, path)
    return TritonEnsembleEndpoint(
        stack, "Endpoint", model_repository=repository, ensemble="pipeline", **options
    )


def make_multi_model(stack: cdk.Stack, path: Path, **props: Any) -> TritonMultiModelEndpoint:
    options = {"instance_type": InstanceType.of("ml.g4dn.xlarge"), **props}
    return TritonMultiModelEndpoint(
        stack, "Endpoint", model_repository=add_repository(stack, path), **options
    )


def container(template: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = only(template, "AWS::SageMaker::Model")["PrimaryContainer"]
    return result


def variant(template: dict[str, Any]) -> dict[str, Any]:
    (result,) = only(template, "AWS::SageMaker::EndpointConfig")["ProductionVariants"]
    assert isinstance(result, dict)
    return result


@pytest.mark.parametrize("environment", [ENVIRONMENT, None], ids=["region", "agnostic"])
def test_ensemble_template(
    path: Path, snapshot: SnapshotAssertion, environment: cdk.Environment | None
) -> None:
    """The template of an ensemble endpoint is as recorded, with and without a Region."""
    stack = make_stack(environment)
    make_ensemble(stack, path)
    assert stack == snapshot(extension_class=TritonTemplateExtension)


def test_multi_model_template(stack: cdk.Stack, path: Path, snapshot: SnapshotAssertion) -> None:
    """The template of a scaled multi-model endpoint is as recorded."""
    endpoint = make_multi_model(stack, path)
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=5)
    count.scale_on_gpu_utilization("Gpu")
    assert stack == snapshot(extension_class=TritonTemplateExtension)


def test_ensemble_names_its_default_model(stack: cdk.Stack, path: Path) -> None:
    """The archive has several models, so the container needs the name of the one to serve."""
    make_ensemble(stack, path)
    assert container(synthesize(stack))["Environment"]["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] == "pipeline"


def test_single_model_archive_is_an_asset_of_the_right_name(stack: cdk.Stack, path: Path) -> None:
    """The model data is a file asset whose key ends in .tar.gz, as SageMaker requires."""
    make_ensemble(stack, path)
    template = synthesize(stack)
    assert flat(container(template)["ModelDataUrl"]).startswith(
        "s3://cdk-hnb659fds-assets-123456789012-eu-west-1/"
    )
    assert container(template)["ModelDataUrl"].endswith(".tar.gz")
    assert container(template)["Mode"] == "SingleModel"


def test_role_reads_its_own_archive_only(stack: cdk.Stack, path: Path) -> None:
    """The execution role may read only the object that it serves."""
    make_ensemble(stack, path)
    template = synthesize(stack)
    key = container(template)["ModelDataUrl"].rsplit("/", 1)[1]
    statement = statements(template)["LoadModel"]
    assert statement["Action"] == "s3:GetObject"
    assert flat(statement["Resource"]) == (
        f"arn:<AWS::Partition>:s3:::cdk-hnb659fds-assets-123456789012-eu-west-1/{key}"
    )


def test_role_has_no_managed_policy_and_no_wildcard_service(stack: cdk.Stack, path: Path) -> None:
    """The role has no AmazonSageMakerFullAccess and no action with an asterisk."""
    make_multi_model(stack, path)
    template = synthesize(stack)
    assert not [r for r in resources(template, "AWS::IAM::Role").values() if "ManagedPolicyArns" in r]
    actions = [
        action
        for statement in statements(template).values()
        for action in (
            statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
        )
    ]
    assert actions
    assert not [action for action in actions if "*" in action]


def test_role_pulls_from_the_accounts_of_the_image(stack: cdk.Stack, path: Path) -> None:
    """The role may pull the image from the accounts of AWS that contain it."""
    make_ensemble(stack, path)
    assert flat(statements(synthesize(stack))["PullImage"]["Resource"]) == (
        "arn:<AWS::Partition>:ecr:eu-west-1:763104351884:repository/sagemaker-tritonserver"
    )


def test_role_trusts_only_sagemaker_of_this_account(stack: cdk.Stack, path: Path) -> None:
    """The trust policy has conditions that prevent the confused deputy problem."""
    make_ensemble(stack, path)
    role = only(synthesize(stack), "AWS::IAM::Role")
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Condition"]["StringEquals"] == {"aws:SourceAccount": "123456789012"}
    assert flat(trust["Condition"]["ArnLike"]["aws:SourceArn"]) == (
        "arn:<AWS::Partition>:sagemaker:eu-west-1:123456789012:*"
    )


def test_no_partition_is_hard_coded(path: Path) -> None:
    """The template does not contain ``arn:aws:``, which would fail in China and GovCloud."""
    stack = make_stack(None)
    make_multi_model(stack, path).auto_scale_instance_count(min_capacity=1, max_capacity=2)
    template = synthesize(stack)
    assert "arn:aws:" not in str(template)
    assert ".<AWS::URLSuffix>/sagemaker-tritonserver" in flat(container(template)["Image"])


def test_policy_exists_before_the_model(stack: cdk.Stack, path: Path) -> None:
    """SageMaker uses the role while it creates the model, so the policy is created first."""
    make_ensemble(stack, path)
    template = synthesize(stack)
    (model,) = resources(template, "AWS::SageMaker::Model").values()
    (policy,) = policies(template)
    assert policy in model["DependsOn"]


def test_multi_model_endpoint_waits_for_its_archives(stack: cdk.Stack, path: Path) -> None:
    """The model depends on the custom resource that copies the archives."""
    make_multi_model(stack, path)
    template = synthesize(stack)
    (model,) = resources(template, "AWS::SageMaker::Model").values()
    (sync,) = resources(template, "Custom::TritonModelSync")
    assert sync in model["DependsOn"]


def test_multi_model_container(stack: cdk.Stack, path: Path) -> None:
    """The container has a mode, a prefix that ends in a slash, and ping mode ``live``."""
    make_multi_model(stack, path)
    template = synthesize(stack)
    assert container(template)["Mode"] == "MultiModel"
    assert flat(container(template)["ModelDataUrl"]).endswith("/models/")
    assert container(template)["Environment"]["SAGEMAKER_TRITON_PING_MODE"] == "live"
    assert "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME" not in container(template)["Environment"]


def test_model_and_endpoint_config_have_no_names(stack: cdk.Stack, path: Path) -> None:
    """Every change replaces them, so a fixed name would fail; the endpoint may have one."""
    make_ensemble(stack, path, endpoint_name="digits")
    template = synthesize(stack)
    assert "ModelName" not in only(template, "AWS::SageMaker::Model")
    assert "EndpointConfigName" not in only(template, "AWS::SageMaker::EndpointConfig")
    assert only(template, "AWS::SageMaker::Endpoint")["EndpointName"] == "digits"


def test_references_are_names_not_arns(stack: cdk.Stack, path: Path) -> None:
    """``Ref`` of these resources is an ARN, so references use the name attributes."""
    endpoint = make_ensemble(stack, path)
    template = synthesize(stack)
    config = only(template, "AWS::SageMaker::Endpoint")["EndpointConfigName"]
    assert config["Fn::GetAtt"][1] == "EndpointConfigName"
    assert variant(template)["ModelName"]["Fn::GetAtt"][1] == "ModelName"
    assert stack.resolve(endpoint.endpoint_name)["Fn::GetAtt"][1] == "EndpointName"


def test_every_l1_is_reachable(path: Path) -> None:
    """The default child is the endpoint, for escape hatches; the others are properties."""
    endpoint = make_ensemble(make_stack(), path)
    assert endpoint.node.default_child is endpoint.cfn_endpoint
    assert endpoint.cfn_model.cfn_resource_type == "AWS::SageMaker::Model"
    assert endpoint.cfn_endpoint_config.cfn_resource_type == "AWS::SageMaker::EndpointConfig"


def test_zero_weight_stays_zero(stack: cdk.Stack, path: Path) -> None:
    """A variant of weight 0 has weight 0 in the template."""
    make_ensemble(stack, path, initial_variant_weight=0)
    assert variant(synthesize(stack))["InitialVariantWeight"] == 0


def test_host_image_follows_container_image(path: Path) -> None:
    """CUDA 13 needs a host AMI with a newer driver; without a GPU no AMI is set."""
    gpu, cpu = make_stack(), make_stack()
    make_ensemble(gpu, path)
    make_ensemble(cpu, path, instance_type=CPU)
    assert variant(synthesize(gpu))["InferenceAmiVersion"] == "al2023-ami-sagemaker-inference-gpu-4-1"
    assert "InferenceAmiVersion" not in variant(synthesize(cpu))


def test_image_follows_instance_type(stack: cdk.Stack, path: Path) -> None:
    """A CPU instance gets the smaller image without CUDA."""
    make_ensemble(stack, path, instance_type=CPU)
    assert container(synthesize(stack))["Image"].endswith("sagemaker-tritonserver:26.05-py3-cpu")


@pytest.mark.parametrize(
    "environment",
    [
        TritonEnvironment(thread_count=8, extra={"TEAM": "vision"}),
        {"SAGEMAKER_TRITON_THREAD_COUNT": "8", "TEAM": "vision"},
    ],
    ids=["typed", "mapping"],
)
def test_environment_reaches_the_container(stack: cdk.Stack, path: Path, environment: Any) -> None:
    """Keywords and a plain mapping give the same variables."""
    make_ensemble(stack, path, environment=environment)
    assert container(synthesize(stack))["Environment"] == {
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "pipeline",
        "SAGEMAKER_TRITON_LOG_VERBOSE": "false",
        "SAGEMAKER_TRITON_THREAD_COUNT": "8",
        "TEAM": "vision",
    }


def test_vpc_and_keys_reach_their_resources(stack: cdk.Stack, path: Path) -> None:
    """The model has subnets and a security group, the volume a key, and the role both permissions."""
    vpc = ec2.Vpc(stack, "Vpc", max_azs=2, nat_gateways=1)
    key = kms.Key(stack, "Key")
    endpoint = make_ensemble(
        stack,
        path,
        vpc=vpc,
        vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
        encryption_key=key,
        enable_network_isolation=True,
    )
    endpoint.connections.allow_to_any_ipv4(ec2.Port.HTTPS)
    template = synthesize(stack)
    model = only(template, "AWS::SageMaker::Model")
    assert (len(model["VpcConfig"]["Subnets"]), len(model["VpcConfig"]["SecurityGroupIds"])) == (2, 1)
    assert model["EnableNetworkIsolation"] is True
    assert flat(only(template, "AWS::SageMaker::EndpointConfig")["KmsKeyId"]).endswith(".Arn>")
    assert {"AttachToVpc", "EncryptVolume"} <= set(statements(template))


def test_given_role_is_used_and_granted(stack: cdk.Stack, path: Path) -> None:
    """Your own role gets the same statements, before the model is created."""
    role = iam.Role(stack, "Own", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    make_ensemble(stack, path, role=role)
    template = synthesize(stack)
    (model,) = resources(template, "AWS::SageMaker::Model").values()
    (policy,) = policies(template)
    assert len(resources(template, "AWS::IAM::Role")) == 1
    assert model["Properties"]["ExecutionRoleArn"] == stack.resolve(role.role_arn)
    assert policy in model["DependsOn"]
    assert "LoadModel" in statements(template)


def test_statement_is_added_to_the_role_before_the_model(stack: cdk.Stack, path: Path) -> None:
    """``add_to_role_policy`` adds a statement, and the model depends on the policy that contains it."""
    endpoint = make_ensemble(stack, path)
    endpoint.add_to_role_policy(
        iam.PolicyStatement(sid="ReadLabels", actions=["dynamodb:GetItem"], resources=["*"])
    )
    template = synthesize(stack)
    assert statements(template)["ReadLabels"]["Action"] == "dynamodb:GetItem"
    (model,) = resources(template, "AWS::SageMaker::Model").values()
    (policy,) = [name for name, each in policies(template).items() if "ReadLabels" in str(each["Properties"])]
    assert policy in model["DependsOn"]


@pytest.mark.parametrize(
    ("construct", "served", "message"),
    [
        (
            TritonEnsembleEndpoint,
            {"ensemble": "pipelin"},
            r'^ensemble: .* got "pipelin"; did you mean "pipeline"',
        ),
        (
            TritonEndpoint,
            {"model": "quite"},
            r'^model: .*; its models are "other", "pipeline", "scale" and "shift"$',
        ),
    ],
    ids=["ensemble", "model"],
)
def test_unknown_model_names_the_property(
    path: Path, construct: Any, served: dict[str, str], message: str
) -> None:
    """The error names ``model`` or ``ensemble``, and suggests a name or lists all."""
    stack = make_stack()
    repository = add_repository(stack, path)
    with pytest.raises(InvalidValueError, match=message):
        construct(stack, "Endpoint", model_repository=repository, instance_type=GPU, **served)
    assert stack.node.try_find_child("Endpoint") is None


def test_immutable_role_is_not_changed(stack: cdk.Stack, path: Path) -> None:
    """An immutable imported role gets no policy."""
    role = iam.Role.from_role_arn(stack, "Own", "arn:aws:iam::123456789012:role/serving", mutable=False)
    make_ensemble(stack, path, role=role)
    assert policies(synthesize(stack)) == {}


def test_grant_invoke_names_the_endpoint(stack: cdk.Stack, path: Path) -> None:
    """The grant allows a caller to invoke this endpoint only."""
    caller, endpoint = iam.User(stack, "Caller"), make_ensemble(stack, path)
    assert endpoint.grant_invoke(caller).success
    (statement,) = [
        statement
        for policy in policies(synthesize(stack)).values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement["Action"] == "sagemaker:InvokeEndpoint"
    ]
    assert statement["Resource"] == stack.resolve(endpoint.cfn_endpoint.attr_endpoint_arn)


def test_endpoint_implements_the_interfaces_of_the_cdk(stack: cdk.Stack, path: Path) -> None:
    """JavaScript code that expects IEndpoint, IGrantable or IConnectable finds every member it calls."""
    endpoint = make_ensemble(stack, path, vpc=ec2.Vpc(stack, "Vpc"))
    kms.Key(stack, "Key").grant_decrypt(endpoint)
    ec2.SecurityGroup(stack, "Db", vpc=ec2.Vpc(stack, "Other")).connections.allow_from(
        endpoint, ec2.Port.tcp(5432)
    )
    api = apigateway.RestApi(stack, "Api")
    api.root.add_method("POST", apigateway.SagemakerIntegration(endpoint))
    assert isinstance(endpoint, ITritonEndpoint)
    template = synthesize(stack)
    assert "kms:Decrypt" in str(policies(template))
    assert "sagemaker:InvokeEndpoint" in str(policies(template))
    assert only(template, "AWS::EC2::SecurityGroupIngress")["FromPort"] == 5432
    assert endpoint.endpoint_ref.endpoint_arn == endpoint.cfn_endpoint.ref


def test_two_endpoints_in_one_stack(path: Path) -> None:
    """Two endpoints of one repository share the sync function and assets, without equal IDs."""
    stack = make_stack(None)
    repository = add_repository(stack, path)
    served: dict[str, Any] = {"model_repository": repository, "instance_type": GPU}
    endpoints = [
        *(TritonEndpoint(stack, f"One{index}", model="other", **served) for index in range(2)),
        *(TritonMultiModelEndpoint(stack, f"Many{index}", **served) for index in range(2)),
    ]
    for endpoint in endpoints:
        endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2).scale_on_gpu_utilization("Gpu")
    template = synthesize(stack)
    assert len(resources(template, "AWS::SageMaker::Endpoint")) == 4
    assert len(resources(template, "AWS::Lambda::Function")) == 1
    assert len(resources(template, "Custom::TritonModelSync")) == 1


def test_works_across_stacks_stages_and_nesting(path: Path, tmp_path: Path) -> None:
    """A repository in one stack of a stage serves an endpoint in a nested stack of another."""
    app = make_app(tmp_path / "cdk.out")
    stage = cdk.Stage(app, "Prod", env=ENVIRONMENT)
    repository = add_repository(cdk.Stack(stage, "Storage"), path)
    parent = cdk.Stack(stage, "Serving")
    nested = cdk.NestedStack(parent, "Nested")
    TritonEnsembleEndpoint(nested, "One", model_repository=repository, ensemble="pipeline", instance_type=GPU)
    TritonMultiModelEndpoint(nested, "Many", model_repository=repository, instance_type=GPU)
    assembly = Path(app.synth().get_nested_assembly("assembly-Prod").directory).resolve()
    manifests = [json.loads(file.read_text()) for file in assembly.glob("*.assets.json")]
    sources = {
        stored["destinations"][place]["objectKey"]: (assembly / stored["source"]["path"]).resolve()
        for manifest in manifests
        for stored in manifest["files"].values()
        for place in stored["destinations"]
    }
    archives = {key: path for key, path in sources.items() if key.endswith(".tar.gz")}
    assert len(archives) == 2
    assert all(path.is_file() and not path.is_relative_to(assembly) for path in archives.values())


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"variant_name": "bad name!"}, "variant_name: must match"),
    ({"endpoint_name": "x" * 64}, "endpoint_name: must have 1 to 63 characters"),
    ({"initial_instance_count": 0}, "initial_instance_count: must be at least 1"),
    ({"initial_variant_weight": -1}, "initial_variant_weight: must be at least 0"),
    ({"instance_type": InstanceType.of("ml.c7g.xlarge")}, "x86_64 only"),
    ({"instance_type": InstanceType.of("ml.p3.2xlarge")}, "compute capability"),
    ({"volume_size": cdk.Size.gibibytes(100)}, "does not support a volume size, got 100 GB"),
    ({"container_startup_health_check_timeout": cdk.Duration.hours(2)}, "from 60 to 3600 seconds"),
    ({"model_data_download_timeout": cdk.Duration.seconds(5)}, "from 60 to 3600 seconds"),
    ({"environment": {"SAGEMAKER_TRITON_THREAD_COUNT": 8}}, 'must be a string, got 8; write "8"'),
    ({"environment": {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "scale"}}, "remove the variable"),
    ({"inference_ami_version": "latest"}, "inference_ami"),
    ({"vpc_subnets": ec2.SubnetSelection(one_per_az=True)}, "^vpc: is required with vpc_subnets"),
]


@pytest.mark.parametrize(("props", "message"), REFUSED, ids=[next(iter(props)) for props, _ in REFUSED])
def test_refused_endpoint_leaves_nothing_behind(path: Path, props: dict[str, Any], message: str) -> None:
    """A property out of range raises an error before anything is added, so the ID can be used again."""
    stack = make_stack()
    repository = add_repository(stack, path)
    options = {"instance_type": GPU, **props}
    with pytest.raises(InvalidValueError, match=message):
        TritonEnsembleEndpoint(stack, "Endpoint", model_repository=repository, ensemble="pipeline", **options)
    assert stack.node.try_find_child("Endpoint") is None


def test_gpu_model_on_a_cpu_instance_is_refused(stack: cdk.Stack, tmp_path: Path) -> None:
    """A model with KIND_GPU raises an error for an instance type without a GPU."""
    config = (
        'backend: "python" input { name: "x" data_type: TYPE_FP32 dims: 4 } '
        'output { name: "y" data_type: TYPE_FP32 dims: 4 } instance_group { kind: KIND_GPU }'
    )
    write_model(tmp_path, "heavy", config=config)
    repository = add_repository(stack, tmp_path)
    with pytest.raises(RepositoryError, match="KIND_GPU"):
        TritonEndpoint(stack, "Endpoint", model_repository=repository, model="heavy", instance_type=CPU)
    assert stack.node.try_find_child("Endpoint") is None


def test_ensemble_endpoint_refuses_other_models(stack: cdk.Stack, path: Path) -> None:
    """TritonEnsembleEndpoint raises an error for a model that is not an ensemble."""
    with pytest.raises(InvalidValueError, match='must be a model with platform "ensemble", got "scale"'):
        TritonEnsembleEndpoint(
            stack, "E", model_repository=add_repository(stack, path), ensemble="scale", instance_type=GPU
        )


def test_ensemble_needs_its_own_construct(stack: cdk.Stack, path: Path) -> None:
    """TritonEndpoint raises an error for an ensemble. The model of a variant may be one."""
    options: Any = {"model_repository": add_repository(stack, path), "instance_type": GPU}
    with pytest.raises(
        InvalidValueError, match=r'^model: must not be an ensemble, .* set ensemble="pipeline"'
    ):
        TritonEndpoint(stack, "E", model="pipeline", **options)
    assert stack.node.try_find_child("E") is None
    next_release = TritonVariant(variant_name="Next", model="pipeline")
    TritonEndpoint(stack, "E", model="other", variants=[next_release], **options)


def test_unknown_property_is_a_type_error(path: Path) -> None:
    """A misspelt property raises an error."""
    with pytest.raises(TypeError, match="instance_typ"):
        make_ensemble(make_stack(), path, instance_typ=GPU)


def test_warnings_become_annotations(stack: cdk.Stack, path: Path) -> None:
    """A warning is annotated at synth with a code that can be acknowledged."""
    make_multi_model(stack, path, instance_type=InstanceType.of("ml.g5.12xlarge"))
    assert any("[ack: constructs-triton:multi-model-gpu-undocumented]" in text for text in warnings(stack))


def test_connections_need_a_vpc(path: Path) -> None:
    """Without a VPC, ``connections`` raises an error."""
    with pytest.raises(InvalidValueError, match="no network connections without a VPC"):
        _ = make_ensemble(make_stack(), path).connections


def test_metrics_know_namespace_and_dimensions(stack: cdk.Stack, path: Path) -> None:
    """Instance metrics have another namespace; all metrics have endpoint and variant as dimensions."""
    endpoint = make_ensemble(stack, path, variant_name="blue")
    gpu, calls = endpoint.metric_gpu_utilization(), endpoint.metric_invocations()
    assert (gpu.namespace, gpu.statistic) == ("/aws/sagemaker/Endpoints", "Average")
    assert (calls.namespace, calls.statistic) == ("AWS/SageMaker", "Sum")
    assert stack.resolve(gpu.dimensions)["VariantName"] == "blue"
