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
    CPU,
    ENVIRONMENT,
    GPU,
    add_endpoint,
    add_ensemble,
    add_many,
    add_repository,
    flat,
    make_app,
    make_stack,
    only,
    only_variant,
    policies,
    primary_container,
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
    TritonVariant,
)
from constructs_triton.testing import TritonTemplateExtension
from constructs_triton_core.errors import InvalidValueError, RepositoryError


def test_ensemble_template(path: Path, snapshot: SnapshotAssertion) -> None:
    """The template of an ensemble endpoint is as recorded, in a stack without a Region."""
    stack = make_stack(None)
    add_ensemble(stack, add_repository(stack, path))
    assert stack == snapshot(extension_class=TritonTemplateExtension)


def test_multi_model_template(stack: cdk.Stack, path: Path, snapshot: SnapshotAssertion) -> None:
    """The template of a scaled multi-model endpoint is as recorded, in a stack with a Region."""
    machine = InstanceType.of("ml.g4dn.xlarge")
    endpoint = add_many(stack, add_repository(stack, path), instance_type=machine)
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=5)
    count.scale_on_gpu_utilization("Gpu")
    assert stack == snapshot(extension_class=TritonTemplateExtension)


def test_role_reads_its_own_archive_only(stack: cdk.Stack, path: Path) -> None:
    """The execution role may read only the object that it serves."""
    add_ensemble(stack, path)
    template = synthesize(stack)
    key = primary_container(template)["ModelDataUrl"].rsplit("/", 1)[1]
    statement = statements(template)["LoadModel"]
    assert statement["Action"] == "s3:GetObject"
    assert flat(statement["Resource"]) == (
        f"arn:<AWS::Partition>:s3:::cdk-hnb659fds-assets-123456789012-eu-west-1/{key}"
    )


def test_zero_weight_stays_zero(stack: cdk.Stack, path: Path) -> None:
    """A variant of weight 0 has weight 0 in the template."""
    add_ensemble(stack, path, initial_variant_weight=0)
    assert only_variant(synthesize(stack))["InitialVariantWeight"] == 0


def test_image_and_host_follow_the_instance_type(path: Path) -> None:
    """CUDA 13 needs a host AMI with a newer driver; without a GPU there is no AMI,
    and a smaller image.
    """
    gpu, cpu = make_stack(), make_stack()
    add_ensemble(gpu, path)
    add_ensemble(cpu, path, instance_type=CPU)
    template = synthesize(cpu)
    assert (
        only_variant(synthesize(gpu))["InferenceAmiVersion"]
        == "al2023-ami-sagemaker-inference-gpu-4-1"
    )
    assert "InferenceAmiVersion" not in only_variant(template)
    assert primary_container(template)["Image"].endswith("sagemaker-tritonserver:26.05-py3-cpu")


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
    add_ensemble(stack, path, environment=environment)
    assert primary_container(synthesize(stack))["Environment"] == {
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "pipeline",
        "SAGEMAKER_TRITON_LOG_VERBOSE": "false",
        "SAGEMAKER_TRITON_THREAD_COUNT": "8",
        "TEAM": "vision",
    }


def test_given_role_is_used_and_granted(stack: cdk.Stack, path: Path) -> None:
    """Your own role gets the same statements, before the model is created."""
    role = iam.Role(stack, "Own", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    add_ensemble(stack, path, role=role)
    template = synthesize(stack)
    (model,) = resources(template, "AWS::SageMaker::Model").values()
    (policy,) = policies(template)
    assert len(resources(template, "AWS::IAM::Role")) == 1
    assert model["Properties"]["ExecutionRoleArn"] == stack.resolve(role.role_arn)
    assert policy in model["DependsOn"]
    assert "LoadModel" in statements(template)


def test_statement_is_added_to_the_role_before_the_model(stack: cdk.Stack, path: Path) -> None:
    """``add_to_role_policy`` adds a statement, and the model depends on the
    policy that contains it.
    """
    endpoint = add_ensemble(stack, path)
    endpoint.add_to_role_policy(
        iam.PolicyStatement(sid="ReadLabels", actions=["dynamodb:GetItem"], resources=["*"])
    )
    template = synthesize(stack)
    assert statements(template)["ReadLabels"]["Action"] == "dynamodb:GetItem"
    (model,) = resources(template, "AWS::SageMaker::Model").values()
    (policy,) = [
        name for name, each in policies(template).items() if "ReadLabels" in str(each["Properties"])
    ]
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
    role = iam.Role.from_role_arn(
        stack, "Own", "arn:aws:iam::123456789012:role/serving", mutable=False
    )
    add_ensemble(stack, path, role=role)
    assert policies(synthesize(stack)) == {}


def test_endpoint_implements_the_interfaces_of_the_cdk(stack: cdk.Stack, path: Path) -> None:
    """JavaScript code that expects IEndpoint, IGrantable or IConnectable finds
    every member it calls.
    """
    endpoint = add_ensemble(stack, path, vpc=ec2.Vpc(stack, "Vpc"))
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
    endpoints = [
        *(add_endpoint(stack, repository, f"One{index}", model="other") for index in range(2)),
        *(add_many(stack, repository, f"Many{index}") for index in range(2)),
    ]
    for endpoint in endpoints:
        endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2).scale_on_gpu_utilization(
            "Gpu"
        )
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
    add_ensemble(nested, repository, "One")
    add_many(nested, repository, "Many")
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


@pytest.mark.parametrize(
    ("props", "message"), REFUSED, ids=[next(iter(props)) for props, _ in REFUSED]
)
def test_refused_endpoint_leaves_nothing_behind(
    path: Path, props: dict[str, Any], message: str
) -> None:
    """A property out of range raises an error before anything is added,
    so the ID can be used again.
    """
    stack = make_stack()
    with pytest.raises(InvalidValueError, match=message):
        add_ensemble(stack, path, **props)
    assert stack.node.try_find_child("Endpoint") is None


def test_gpu_model_on_a_cpu_instance_is_refused(stack: cdk.Stack, tmp_path: Path) -> None:
    """A model with KIND_GPU raises an error for an instance type without a GPU."""
    write_model(tmp_path, "heavy", group="kind: KIND_GPU")
    with pytest.raises(RepositoryError, match="KIND_GPU"):
        add_endpoint(stack, tmp_path, model="heavy", instance_type=CPU)
    assert stack.node.try_find_child("Endpoint") is None


def test_ensemble_endpoint_refuses_other_models(stack: cdk.Stack, path: Path) -> None:
    """TritonEnsembleEndpoint raises an error for a model that is not an ensemble."""
    with pytest.raises(
        InvalidValueError, match='must be a model with platform "ensemble", got "scale"'
    ):
        add_ensemble(stack, path, ensemble="scale")


def test_ensemble_needs_its_own_construct(stack: cdk.Stack, path: Path) -> None:
    """TritonEndpoint raises an error for an ensemble. The model of a variant may be one."""
    repository = add_repository(stack, path)
    with pytest.raises(
        InvalidValueError, match=r'^model: must not be an ensemble, .* set ensemble="pipeline"'
    ):
        add_endpoint(stack, repository, "E", model="pipeline")
    assert stack.node.try_find_child("E") is None
    next_release = TritonVariant(variant_name="Next", model="pipeline")
    add_endpoint(stack, repository, "E", model="other", variants=[next_release])


def test_warnings_become_annotations(stack: cdk.Stack, path: Path) -> None:
    """A warning is annotated at synth with a code that can be acknowledged."""
    add_many(stack, path, instance_type=InstanceType.of("ml.g5.12xlarge"))
    assert any(
        "[ack: constructs-triton:multi-model-gpu-undocumented]" in text for text in warnings(stack)
    )


def test_connections_need_a_vpc(path: Path) -> None:
    """Without a VPC, ``connections`` raises an error."""
    with pytest.raises(InvalidValueError, match="no network connections without a VPC"):
        _ = add_ensemble(make_stack(), path).connections
