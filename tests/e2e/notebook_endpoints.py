"""Endpoints as the notebooks of the five articles create them: the same boto3 calls, with models
for a CPU.

The calls are those of the articles. The models of the archives are small Python models in place of
T5, DALI, BERT and ResNet, since those need a GPU or a download.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deploy_app import MODEL

from cdk_rehearse import SimulatedAccount

BUCKET = "sagemaker-us-east-1-123456789012"
ROLE = "AmazonSageMaker-ExecutionRole-20230405T120000"
_STAMP = "2023-04-05-12-00-00"
_MAY_ASSUME = {"Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
_TRUST = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **_MAY_ASSUME}]}
_PYTHON = """backend: "python"
max_batch_size: 16
input { name: "x" data_type: TYPE_FP32 dims: 4 }
output { name: "y" data_type: TYPE_FP32 dims: 4 }
"""
_ENSEMBLE = """platform: "ensemble"
max_batch_size: 16
input { name: "x" data_type: TYPE_FP32 dims: 4 }
output { name: "y" data_type: TYPE_FP32 dims: 4 }
ensemble_scheduling {
  step {
    model_name: "FIRST"
    model_version: -1
    input_map { key: "x" value: "x" }
    output_map { key: "y" value: "z" }
  }
  step {
    model_name: "SECOND"
    model_version: -1
    input_map { key: "x" value: "z" }
    output_map { key: "y" value: "y" }
  }
}
"""
#: Article 003: dynamic batching, and two instances of the model on each GPU.
_BATCHING = "dynamic_batching { preferred_batch_size: 16 max_queue_delay_microseconds: 100 }\n"
_TWO_INSTANCES = "instance_group [ { count: 2 kind: KIND_GPU } ]\n"


@dataclass(frozen=True)
class NotebookEndpoint:
    """An endpoint of an article.

    ``archives`` are the models of each archive by its key; ``scaling`` is its policy, if it has
    one.
    """

    name: str
    archives: Mapping[str, Mapping[str, str | int]]
    image: str
    variant: Mapping[str, Any]
    environment: Mapping[str, str] = field(default_factory=dict)
    is_multi_model: bool = False
    tuning: str = ""
    scaled_to: int = 0

    @property
    def target_models(self) -> Sequence[str | None]:
        """The archives that requests name; ``None`` for an endpoint with one."""
        return [key.rpartition("/")[2] for key in self.archives] if self.is_multi_model else [None]

    @property
    def model_data_url(self) -> str:
        key = next(iter(self.archives))
        return f"s3://{BUCKET}/{key.rpartition('/')[0] + '/' if self.is_multi_model else key}"


def _variant(instance_type: str, count: int = 1) -> dict[str, Any]:
    return {
        "InstanceType": instance_type,
        "InitialVariantWeight": 1,
        "InitialInstanceCount": count,
        "VariantName": "AllTraffic",
    }


def _bert(name: str, instance_type: str, tuning: str, count: int = 1) -> NotebookEndpoint:
    return NotebookEndpoint(
        name=f"bert-{name}-{_STAMP}",
        archives={f"bert-{name}/model.tar.gz": {"bert": 3}},
        image="22.10",
        variant=_variant(instance_type, count),
        tuning=tuning,
    )


ENDPOINTS = (
    # 000, Python backend: one T5 model on a multi-model endpoint.
    NotebookEndpoint(
        name=f"nlp-mme-gpu-ep-{_STAMP}-2xl",
        archives={"nlp-mme-gpu/t5_pytorch.tar.gz": {"t5_pytorch": 1}},
        image="23.02",
        variant=_variant("ml.g5.2xlarge"),
        is_multi_model=True,
    ),
    # 001, ensembles: DALI and Inception in one archive.
    NotebookEndpoint(
        name=f"triton-tf-dali-ensemble-{_STAMP}",
        archives={
            "triton-serve/model.tar.gz": {
                "dali": 1,
                "inception_graphdef": 2,
                "ensemble_dali_inception": "dali inception_graphdef",
            }
        },
        image="22.07",
        variant=_variant("ml.g4dn.4xlarge"),
        environment={"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "ensemble_dali_inception"},
    ),
    # 002: two ensembles on a multi-model endpoint.
    NotebookEndpoint(
        name=f"triton-mme-gpu-ensemble-{_STAMP}",
        archives={
            "triton-mme-gpu-ensemble/model_tf_dali.tar.gz": {
                "dali": 1,
                "inception": 2,
                "ensemble": "dali inception",
            },
            "triton-mme-gpu-ensemble/model_trt_python.tar.gz": {
                "preprocess": 4,
                "bert-trt": 8,
                "ensemble": "preprocess bert-trt",
            },
        },
        image="23.03",
        variant=_variant("ml.g4dn.4xlarge"),
        is_multi_model=True,
    ),
    # 003, tuning: the configurations with dynamic batching and model instances on three types.
    _bert("pt-db", "ml.g4dn.xlarge", _BATCHING),
    _bert("pt-ig", "ml.g4dn.2xlarge", _TWO_INSTANCES, 2),
    _bert("pt-ig-db", "ml.g4dn.12xlarge", _TWO_INSTANCES + _BATCHING),
    # 004: two archives with a model of the same name, and scaling on GPU utilization.
    NotebookEndpoint(
        name=f"resnet-mme-gpu-{_STAMP}",
        archives={
            "resnet-mme-gpu/resnet_pt_v0.tar.gz": {"resnet": 16},
            "resnet-mme-gpu/resnet_trt_v0.tar.gz": {"resnet": 32},
        },
        image="22.10",
        variant=_variant("ml.g4dn.4xlarge", 2),
        is_multi_model=True,
        scaled_to=5,
    ),
)


def prepare_account(aws: SimulatedAccount) -> None:
    """Create what the SageMaker SDK creates before any endpoint:
    the default bucket and Studio's role.
    """
    aws.bootstrap()
    aws.client("s3").create_bucket(Bucket=BUCKET)
    iam = aws.client("iam")
    iam.create_role(
        RoleName=ROLE, Path="/service-role/", AssumeRolePolicyDocument=json.dumps(_TRUST)
    )
    iam.attach_role_policy(
        RoleName=ROLE, PolicyArn="arn:aws:iam::aws:policy/AmazonSageMakerFullAccess"
    )


def create(aws: SimulatedAccount, endpoint: NotebookEndpoint, folder: Path) -> None:
    """Upload the archives, and make the calls of the article."""
    for key, models in endpoint.archives.items():
        archive = write_archive(folder / key, models, endpoint.tuning)
        aws.client("s3").upload_file(str(archive), BUCKET, key)
    sagemaker = aws.client("sagemaker")
    account = "785573368785"
    container: dict[str, Any] = {
        "Image": (
            f"{account}.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:{endpoint.image}-py3"
        ),
        "ModelDataUrl": endpoint.model_data_url,
    }
    if endpoint.is_multi_model:
        container["Mode"] = "MultiModel"
    if endpoint.environment:
        container["Environment"] = dict(endpoint.environment)
    role = f"arn:aws:iam::123456789012:role/service-role/{ROLE}"
    sagemaker.create_model(
        ModelName=endpoint.name, ExecutionRoleArn=role, PrimaryContainer=container
    )
    sagemaker.create_endpoint_config(
        EndpointConfigName=endpoint.name,
        ProductionVariants=[{**endpoint.variant, "ModelName": endpoint.name}],
    )
    sagemaker.create_endpoint(EndpointName=endpoint.name, EndpointConfigName=endpoint.name)
    if endpoint.scaled_to:
        _scale(aws, endpoint)


def _scale(aws: SimulatedAccount, endpoint: NotebookEndpoint) -> None:
    """The scaling of article 004."""
    scaling = aws.client("application-autoscaling")
    key = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": f"endpoint/{endpoint.name}/variant/AllTraffic",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }
    scaling.register_scalable_target(**key, MinCapacity=1, MaxCapacity=endpoint.scaled_to)
    scaling.put_scaling_policy(
        **key,
        PolicyName="GPUUtil-ScalingPolicy",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={
            "TargetValue": 60.0,
            "CustomizedMetricSpecification": {
                "MetricName": "GPUUtilization",
                "Namespace": "/aws/sagemaker/Endpoints",
                "Dimensions": [
                    {"Name": "EndpointName", "Value": endpoint.name},
                    {"Name": "VariantName", "Value": "AllTraffic"},
                ],
                "Statistic": "Average",
                "Unit": "Percent",
            },
            "ScaleInCooldown": 600,
            "ScaleOutCooldown": 200,
        },
    )


def delete(aws: SimulatedAccount, endpoint: NotebookEndpoint) -> None:
    """Delete the endpoint, with its configuration, its model and its scaling."""
    scaling, sagemaker = aws.client("application-autoscaling"), aws.client("sagemaker")
    if endpoint.scaled_to:
        scaling.deregister_scalable_target(
            ServiceNamespace="sagemaker",
            ResourceId=f"endpoint/{endpoint.name}/variant/AllTraffic",
            ScalableDimension="sagemaker:variant:DesiredInstanceCount",
        )
    sagemaker.delete_endpoint(EndpointName=endpoint.name)
    sagemaker.delete_endpoint_config(EndpointConfigName=endpoint.name)
    sagemaker.delete_model(ModelName=endpoint.name)


def write_archive(path: Path, models: Mapping[str, str | int], tuning: str = "") -> Path:
    """Write an archive as ``tar -C repository -czf`` does. A number is what a Python model adds."""
    repository = path.with_suffix("").with_suffix(".models")
    path.parent.mkdir(parents=True, exist_ok=True)
    for name, value in models.items():
        (repository / name / "1").mkdir(parents=True)
        config = _PYTHON + tuning
        if isinstance(value, str):
            first, second = value.split()
            config = _ENSEMBLE.replace("FIRST", first).replace("SECOND", second)
        else:
            (repository / name / "1" / "model.py").write_text(MODEL.format(constant=value))
        (repository / name / "config.pbtxt").write_text(f'name: "{name}"\n{config}')
    with tarfile.open(path, "w:gz") as archive:
        for name in models:
            archive.add(repository / name, name)
    return path
