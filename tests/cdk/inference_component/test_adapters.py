"""LoRA adapters on a component whose container is not Triton."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker
from cdk_apps import flat, make_app, resources, statement_list, synthesize
from component_apps import add_component, add_endpoint, warnings_of
from test_container_component import add_chat

from constructs_triton import ModelSource, ServingImage
from constructs_triton_core.errors import ArchiveError, InvalidValueError

VLLM = {"SM_VLLM_ENABLE_LORA": "true", "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "true"}
LMI = {"OPTION_ENABLE_LORA": "true"}
COMPONENT = "AWS::SageMaker::InferenceComponent"


def write_adapter(
    folder: Path, *, rank: object = 16, kind: str = "LORA", weights: str = "safetensors"
) -> Path:
    """Write the files of PEFT's ``save_pretrained``; the weights are not read."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": kind, "r": rank}))
    if weights:
        (folder / f"adapter_model.{weights}").write_bytes(b"weights")
    return folder


def add_base(stack: cdk.Stack, environment: dict[str, str] | None = None, **options: Any) -> Any:
    """Add a component with a server of your own, which reads the variables of vLLM or LMI."""
    given = VLLM if environment is None else environment
    image = ServingImage.from_registry("own/server:1", cuda_version="13.0")
    return add_chat(add_endpoint(stack, **options), image=image, environment=given)


def adapters(template: dict[str, Any]) -> list[dict[str, Any]]:
    """The components of a template that have no variant."""
    components = resources(template, COMPONENT).values()
    return [found for found in components if "VariantName" not in found["Properties"]]


def allowed(template: dict[str, Any], action: str) -> list[Any]:
    """The resources of each statement that allows only this action."""
    statements = statement_list(template)
    return [found["Resource"] for found in statements if found["Action"] == action]


def test_adapter_has_only_its_base_and_its_archive(stack: cdk.Stack, tmp_path: Path) -> None:
    """It has no variant, requirements, copies and deployment,
    and the role may read it before that.
    """
    base = add_base(stack)
    base.add_adapter(
        "German", source=write_adapter(tmp_path / "german"), inference_component_name="german"
    )

    template = synthesize(stack)

    (adapter,) = adapters(template)
    properties = adapter["Properties"]
    assert set(properties) == {"EndpointName", "InferenceComponentName", "Specification"}
    specification = properties["Specification"]
    assert set(specification) == {"BaseInferenceComponentName", "Container"}
    assert ".InferenceComponentArn" in json.dumps(specification).replace('", "', ".")
    assert set(specification["Container"]) == {"ArtifactUrl"}

    archive = flat(specification["Container"]["ArtifactUrl"]).removeprefix("s3://")
    assert any(flat(arn).endswith(archive) for arn in allowed(template, "s3:GetObject"))
    assert any("ExecutionPolicy" in name for name in adapter["DependsOn"])


def test_archive_has_the_files_at_its_root_and_is_reproducible(tmp_path: Path) -> None:
    """A copy of the folder with another name and other times gives the same key and bytes."""

    def archive(name: str) -> Path:
        app = make_app(tmp_path / f"out-{name}")
        environment = cdk.Environment(account="123456789012", region="eu-west-1")
        stack = cdk.Stack(app, "Chat", env=environment)
        folder = write_adapter(tmp_path / name / "adapter" / name)
        add_base(stack).add_adapter("German", source=str(folder))
        app.synth()
        (written,) = (tmp_path / f"out-{name}").glob("*.tar.gz")
        return written

    first = archive("first")
    second = archive("second")

    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as opened:
        assert opened.getnames() == ["adapter_config.json", "adapter_model.safetensors"]


def test_callers_and_metrics_name_the_adapter(stack: cdk.Stack, tmp_path: Path) -> None:
    """A grant names the adapter and the endpoint, metrics have its name,
    and the log is that of the base.
    """
    base = add_base(stack)
    adapter = base.add_adapter("German", source=write_adapter(tmp_path / "german"))
    role = iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    adapter.grant_invoke(role)

    ((of_endpoint, of_adapter),) = allowed(synthesize(stack), "sagemaker:InvokeEndpoint")
    assert "Adapter" not in flat(of_endpoint)
    assert "Adapter" in flat(of_adapter)
    metric = adapter.metric_invocations_per_copy().dimensions
    assert metric is not None
    assert metric["InferenceComponentName"] == adapter.inference_component_name
    assert adapter.log_group_name == base.log_group_name
    assert isinstance(adapter.cfn_inference_component, sagemaker.CfnInferenceComponent)
    with pytest.raises(InvalidValueError, match="auto_scale_copy_count of Test/Chat"):
        adapter.auto_scale_copy_count(min_capacity=1, max_capacity=2)


def test_archive_in_a_bucket_and_a_fixed_name(stack: cdk.Stack) -> None:
    """An archive is used where it is, and a fixed name has the warning of all components."""
    bucket = s3.Bucket.from_bucket_name(stack, "Adapters", "my-adapters")
    source = ModelSource.from_bucket(bucket, "legal.tar.gz")
    add_base(stack, LMI).add_adapter("Legal", source=source, inference_component_name="legal")
    (adapter,) = adapters(synthesize(stack))
    container = adapter["Properties"]["Specification"]["Container"]
    assert container["ArtifactUrl"] == "s3://my-adapters/legal.tar.gz"
    assert "constructs-triton:component-name-fixed" in warnings_of(stack)


def test_new_files_update_the_adapter_and_a_new_base_replaces_it(tmp_path: Path) -> None:
    """The logical id depends on the base, which an update cannot change, and not on the files."""

    def logical_id(weights: str, endpoint: str) -> str:
        stack = cdk.Stack(make_app(), "Stack")
        base = add_base(stack, endpoint_name=endpoint)
        folder = write_adapter(tmp_path / weights, weights=weights)
        adapter = base.add_adapter("German", source=folder)
        return stack.get_logical_id(adapter.cfn_inference_component)

    before = logical_id("safetensors", "a")
    assert logical_id("bin", "a") == before
    assert logical_id("bin", "b") != before


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"SM_VLLM_ENABLE_LORA": "true"},
        {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "true"},
        {**VLLM, "SM_VLLM_ENABLE_LORA": "false"},
        {"OPTION_ENABLE_LORA": "no"},
    ],
)
def test_base_must_load_adapters_while_it_runs(
    stack: cdk.Stack, tmp_path: Path, environment: dict[str, str]
) -> None:
    """Without the variables of its image, the containers would refuse each adapter."""
    base = add_base(stack, environment)
    with pytest.raises(
        InvalidValueError, match=r'^Test/Chat/German: .*"SM_VLLM_ENABLE_LORA": "true"'
    ):
        base.add_adapter("German", source=write_adapter(tmp_path / "german"))
    assert base.node.try_find_child("German") is None


@pytest.mark.parametrize(
    ("rank", "environment", "hint"),
    [
        (24, VLLM, 'set SM_VLLM_MAX_LORA_RANK of the base component to "32"'),
        (
            17,
            {**LMI, "OPTION_MAX_LORA_RANK": "16"},
            'set OPTION_MAX_LORA_RANK of the base component to "32"',
        ),
        (600, {**VLLM, "SM_VLLM_MAX_LORA_RANK": "512"}, "train it with a rank up to 512"),
    ],
)
def test_rank_above_that_of_the_base_is_an_error(
    stack: cdk.Stack, tmp_path: Path, rank: int, environment: dict[str, str], hint: str
) -> None:
    """The message names the variable, and the next value that vLLM accepts."""
    with pytest.raises(InvalidValueError, match=hint):
        add_base(stack, environment).add_adapter(
            "German", source=write_adapter(tmp_path / "a", rank=rank)
        )


@pytest.mark.parametrize(
    ("rank", "environment"),
    [
        (16, VLLM),
        (24, {**VLLM, "SM_VLLM_MAX_LORA_RANK": "32"}),
        (64, LMI),  # LMI's default is not known
        (64, {**VLLM, "SM_VLLM_MAX_LORA_RANK": cdk.Aws.REGION}),
        (16, {"SM_VLLM_ENABLE_LORA": cdk.Aws.REGION, "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1"}),
    ],
)
def test_rank_that_fits_or_is_not_known_is_accepted(
    stack: cdk.Stack, tmp_path: Path, rank: int, environment: dict[str, str]
) -> None:
    """A rank up to the limit, and a limit that is a token or not known, are no error."""
    add_base(stack, environment).add_adapter(
        "German", source=write_adapter(tmp_path / "a", rank=rank)
    )
    assert len(adapters(synthesize(stack))) == 1


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, 'must be a folder with adapter_config.json of PEFT, got ".*"'),
        ({"adapter_config.json": "{"}, "must be a folder with adapter_config.json of PEFT"),
        (
            {"adapter_config.json": "[1]"},
            'must have "peft_type": "LORA" and a rank "r", got None and None',
        ),
        ({"adapter_config.json": '{"peft_type": "IA3", "r": 8}'}, "got 'IA3' and 8; train"),
        ({"adapter_config.json": '{"peft_type": "LORA"}'}, "got 'LORA' and None; train"),
        ({"adapter_config.json": '{"peft_type": "LORA", "r": true}'}, "got 'LORA' and True; train"),
        (
            {"adapter_config.json": '{"peft_type": "LORA", "r": 8}'},
            "must have adapter_model.safetensors or",
        ),
    ],
)
def test_folder_without_an_adapter_is_an_error(
    stack: cdk.Stack, tmp_path: Path, files: dict[str, str], message: str
) -> None:
    """The configuration and the weights of PEFT must be there."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    base = add_base(stack)
    with pytest.raises(InvalidValueError, match=f"^source: .*{message}"):
        base.add_adapter("German", source=tmp_path)
    assert base.node.try_find_child("German") is None


def test_source_is_required(stack: cdk.Stack) -> None:
    """A source that is ``None``, as that of a forgotten setting, is an error with an example."""
    with pytest.raises(
        InvalidValueError, match=r"^source: is required, got None; write for example"
    ):
        add_base(stack).add_adapter("German", source=None)


def test_large_configuration_is_not_read(stack: cdk.Stack, tmp_path: Path) -> None:
    """A configuration above 64 MiB is an error, and is not read."""
    with (write_adapter(tmp_path / "a") / "adapter_config.json").open("wb") as file:
        file.truncate(65 << 20)
    with pytest.raises(InvalidValueError, match="larger than"):
        add_base(stack).add_adapter("German", source=tmp_path / "a")


def test_link_out_of_the_folder_is_not_packed(stack: cdk.Stack, tmp_path: Path) -> None:
    """A link to a file elsewhere is an error, as in a model repository."""
    secret = tmp_path / "elsewhere" / "notes.txt"
    secret.parent.mkdir()
    secret.write_text("x")
    base = add_base(stack)
    folder = write_adapter(tmp_path / "models" / "german")
    (folder / "notes.txt").symlink_to(secret)
    with pytest.raises(ArchiveError, match="is a link out of"):
        base.add_adapter("German", source=folder)
    assert base.node.try_find_child("German") is None


def test_other_sources_and_names_are_refused(stack: cdk.Stack, tmp_path: Path) -> None:
    """Uncompressed files, other sources, and a name that is used already are errors."""
    base = add_base(stack)
    folder = write_adapter(tmp_path / "german")
    prefix = ModelSource.from_s3_prefix(
        s3.Bucket.from_bucket_name(stack, "Files", "files"), "german/"
    )
    for source in (prefix, ModelSource.from_directory(folder)):
        with pytest.raises(
            InvalidValueError, match=r"^source: .* one .tar.gz archive; use the path of a fold"
        ):
            base.add_adapter("German", source=source)
    with pytest.raises(InvalidValueError, match=r"^source: must be of type"):
        base.add_adapter("German", source=7)
    with pytest.raises(InvalidValueError, match=r"^inference_component_name: "):
        base.add_adapter("German", source=folder, inference_component_name="a_b")
    base.add_adapter("German", source=folder, inference_component_name="german")
    with pytest.raises(InvalidValueError, match="must be unique"):
        base.add_adapter("Other", source=folder, inference_component_name="german")


def test_components_of_triton_take_no_adapters(stack: cdk.Stack, tmp_path: Path) -> None:
    """Triton answers 400 to SageMaker's requests for adapters, so the error names the component
    that takes them, whatever is passed.
    """
    component = add_component(add_endpoint(stack), tmp_path / "models")
    with pytest.raises(InvalidValueError, match=r"do not load adapters .* ContainerInferenceComp"):
        component.add_adapter("German", source="adapters/german")


def test_role_may_use_the_key_of_the_asset_bucket(stack: cdk.Stack, tmp_path: Path) -> None:
    """The bucket of ``cdk bootstrap`` may be under a key of the user, which nothing in the app
    names; an adapter in a bucket of the user has the key of that bucket.
    """
    arn = "arn:aws:kms:eu-west-1:123456789012:key/of-the-asset-bucket"
    key = kms.Key.from_key_arn(stack, "Key", arn)
    base = add_base(stack)
    base.add_adapter("German", source=write_adapter(tmp_path / "german"), asset_encryption_key=key)
    statements = statement_list(synthesize(stack))
    (statement,) = (found for found in statements if found["Resource"] == arn)
    assert statement["Action"] == "kms:Decrypt"

    bucket = s3.Bucket.from_bucket_name(stack, "Bucket", "adapters")
    source = ModelSource.from_bucket(bucket, "french.tar.gz")
    with pytest.raises(InvalidValueError, match="asset_encryption_key: has no effect"):
        base.add_adapter("French", source=source, asset_encryption_key=key)
