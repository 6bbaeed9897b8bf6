"""The requests that start a job: a processing job, or a training job of the same script.

Both run ``compile.sh`` with four folders. Arguments have at most 256 characters, so those of
``trtexec`` are in a file. Source: botocore, sagemaker service model, CreateProcessingJob and
CreateTrainingJob.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Annotated, Any

from constructs_triton_core.declared_values import Value
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.program.argument_types import pair_argument
from constructs_triton_tools.building.plans.compile_jobs import (
    JobKind,
    entrypoint,
    regions_without_processing,
)
from constructs_triton_tools.building.plans.compile_jobs import job_kind as job_kind_of
from constructs_triton_tools.building.plans.plan_build import PlanBuild
from constructs_triton_tools.declared_fields import check_limits, shows_options

DEFAULT_PREFIX = "constructs-triton/compile/"
# botocore sagemaker service model: RoleArn, ProcessingMaxRuntimeInSeconds, KmsKeyId,
# SecurityGroupId, SubnetId, Tag.
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}):role/?[\w+=,.@/-]+")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_SECONDS = RangeLimit(1, 777_600)
_MOST_TAGS = 49
_OWN_TAG = ("constructs-triton", "compile")
TIMING_CACHE = "timing.cache"
_MESSAGES = "/opt/ml/output"
_UNNAMEABLE = re.compile(r"[^A-Za-z0-9]+")
_NAME_LENGTH = 63


@shows_options
@dataclass(frozen=True)
class JobSettings:
    """The settings of a job: its Region, its role, the bucket of its inputs and results,
    and its options.
    """

    region: str
    role: str
    bucket: str
    prefix: Annotated[str, Value("beginning of the keys")] = DEFAULT_PREFIX
    max_seconds: Annotated[
        int, Value("SageMaker stops the job after this time", limit=_SECONDS, metavar="N")
    ] = 7200
    volume_gb: Annotated[
        int,
        Value(
            "disk of the job; less where the instance has less local NVMe",
            limit=RangeLimit(1, None),
            flag="--volume-size",
            metavar="GB",
        ),
    ] = 30
    kms_key: Annotated[str | None, Value("KMS key of the results", metavar="ARN")] = None
    subnets: Annotated[
        Sequence[str], Value("subnet of the job", flag="--subnet", metavar="ID")
    ] = ()
    security_groups: Annotated[
        Sequence[str], Value("security group of the job", flag="--security-group", metavar="ID")
    ] = ()
    is_isolated: Annotated[
        bool,
        Value(
            "isolate the job from the network, which it does not need",
            flag="--no-network-isolation",
        ),
    ] = True
    tags: Annotated[
        Sequence[tuple[str, str]],
        Value(
            "tag of the job",
            flag="--tag",
            metavar="KEY=VALUE",
            read=pair_argument("KEY=VALUE", "team=search"),
        ),
    ] = ()

    def __post_init__(self) -> None:
        if _ROLE.fullmatch(self.role) is None:
            raise InvalidValueError(
                f'--role: must be the ARN of a role, got "{self.role}"; write it as '
                "arn:aws:iam::123456789012:role/PlanJobs"
            )
        if _BUCKET.fullmatch(self.bucket) is None:
            raise InvalidValueError(
                f'--bucket: must be the name of a bucket, got "{self.bucket}"; '
                "write it without s3://"
            )
        if not self.prefix.endswith("/") or self.prefix.startswith("/"):
            raise InvalidValueError(
                '--prefix: must end with "/" and not begin with it, '
                f'got "{self.prefix}"; write it as plans/'
            )
        if bool(self.subnets) != bool(self.security_groups):
            raise InvalidValueError(
                "--subnet, --security-group: a job in a VPC needs both; set both"
            )
        check_limits(self)
        if len(self.tags) > _MOST_TAGS:
            raise InvalidValueError(
                f"--tag: must be at most {_MOST_TAGS}, got {len(self.tags)}; remove some"
            )

    @cached_property
    def all_tags(self) -> list[dict[str, str]]:
        """The tags of the request; the first one says which program started the job."""
        return [{"Key": key, "Value": value} for key, value in dict((_OWN_TAG, *self.tags)).items()]

    def url(self, key: str) -> str:
        """Return the S3 URI of a key below the prefix."""
        return f"s3://{self.bucket}/{self.prefix}{key}"


def account_of_role(role: str) -> str | None:
    """Return the account of a role's ARN."""
    match = _ROLE.fullmatch(role)
    return match[1] if match else None


def chosen_kind(build: PlanBuild, region: str, given: JobKind | None) -> JobKind:
    """Return the kind of the job: as given, or what has the GPU."""
    possible = job_kind_of(build.gpu)
    if given == "processing" and possible == "training":
        raise InvalidValueError(
            f"--job: processing jobs do not have {build.gpu} "
            f"({build.gpu.gpu_model}); use --job training"
        )
    kind = given or possible
    if kind == "processing" and region in regions_without_processing(build.gpu):
        raise InvalidValueError(
            f"--region: processing jobs have no {build.gpu.family} instances in {region}; use "
            "--job training, or compile in another Region with a bucket there, since a plan does "
            "not depend on the Region"
        )
    return kind


def job_name(build: PlanBuild, model_name: str, moment: str) -> str:
    """Return a name with the model, the GPU and the key;
    ``moment`` makes it unique in the account.
    """
    end = f"-{build.gpu_folder}-{build.key[:8]}-{moment}"
    start = _UNNAMEABLE.sub("-", f"plan-{model_name}").strip("-")
    return f"{start[: _NAME_LENGTH - len(end)].strip('-')}{end}"


@dataclass(frozen=True, eq=False)
class JobRequest:
    """The job that builds one plan."""

    name: str
    kind: JobKind
    build: PlanBuild
    settings: JobSettings

    @property
    def operation(self) -> str:
        """The operation of SageMaker's API."""
        return f"Create{self.kind.capitalize()}Job"

    @property
    def log_group(self) -> str:
        """The log group of the job; the names of its streams begin with that of the job."""
        return f"/aws/sagemaker/{self.kind.capitalize()}Jobs"

    @property
    def job_prefix(self) -> str:
        """Key of the folder with the script and its arguments, below the prefix."""
        return f"jobs/{self.name}/job/"

    @property
    def model_prefix(self) -> str:
        """Key of the folder with the model, which all builds of it share."""
        return f"models/{self.build.model.digest}/"

    @property
    def output_prefix(self) -> str:
        """Key of the folder to which the job writes."""
        return f"jobs/{self.name}/output/"

    @property
    def plan_prefix(self) -> str:
        """Key of the folder in which the plan is kept."""
        return f"plans/{self.build.key}/"

    @property
    def started_key(self) -> str:
        """Key of the note that says which job builds the plan."""
        return f"{self.plan_prefix}job.json"

    @property
    def timing_key(self) -> str:
        """Key of the timing cache, which all plans for the same GPU and image share."""
        image = _UNNAMEABLE.sub("-", self.build.image.identity)
        return f"timing/{image}/{self.build.gpu_folder}/{TIMING_CACHE}"

    @cached_property
    def job_files(self) -> dict[str, bytes]:
        """The content of the job's folder."""
        script = resources.files(__package__).joinpath("compile.sh").read_bytes()
        return {
            "compile.sh": script,
            "trtexec.txt": "".join(f"{argument}\n" for argument in self.build.arguments).encode(),
            "compute_capability.txt": f"{self.build.gpu.compute_capability}\n".encode(),
        }

    @property
    def request(self) -> dict[str, Any]:
        """The request of ``operation``."""
        return self._processing() if self.kind == "processing" else self._training()

    def _command(self, job: str, model: str, output: str) -> dict[str, list[str]]:
        # Without NVIDIA's entry point the compatibility libraries of CUDA are not set up.
        return {
            "ContainerEntrypoint": [entrypoint(), "/bin/bash", f"{job}/compile.sh"],
            "ContainerArguments": [job, model, output, _MESSAGES],
        }

    def _processing(self) -> dict[str, Any]:
        folder = "/opt/ml/processing"
        job = f"{folder}/input/job"
        model = f"{folder}/input/model"
        output = f"{folder}/output"
        settings = self.settings
        uploaded = {
            "S3Uri": self._uri(self.output_prefix),
            "LocalPath": output,
            "S3UploadMode": "EndOfJob",
        }
        return {
            "ProcessingJobName": self.name,
            "ProcessingResources": {"ClusterConfig": self._cluster()},
            "StoppingCondition": {"MaxRuntimeInSeconds": settings.max_seconds},
            "AppSpecification": {
                "ImageUri": self.build.image.uri,
                **self._command(job, model, output),
            },
            "ProcessingInputs": [
                {
                    "InputName": name,
                    "S3Input": {
                        "S3Uri": self._uri(prefix),
                        "LocalPath": path,
                        "S3DataType": "S3Prefix",
                        "S3InputMode": "File",
                    },
                }
                for name, prefix, path in (
                    ("job", self.job_prefix, job),
                    ("model", self.model_prefix, model),
                )
            ],
            "ProcessingOutputConfig": {
                "Outputs": [{"OutputName": "plan", "S3Output": uploaded}],
                **self._key(),
            },
            "NetworkConfig": {"EnableNetworkIsolation": settings.is_isolated, **self._vpc()},
            "RoleArn": settings.role,
            "Tags": settings.all_tags,
        }

    def _training(self) -> dict[str, Any]:
        folder = "/opt/ml/input/data"
        settings = self.settings
        return {
            "TrainingJobName": self.name,
            "AlgorithmSpecification": {
                "TrainingImage": self.build.image.uri,
                "TrainingInputMode": "File",
                **self._command(f"{folder}/job", f"{folder}/model", "/opt/ml/model"),
            },
            "RoleArn": settings.role,
            "InputDataConfig": [
                {
                    "ChannelName": name,
                    "DataSource": {
                        "S3DataSource": {
                            "S3DataType": "S3Prefix",
                            "S3Uri": self._uri(prefix),
                            "S3DataDistributionType": "FullyReplicated",
                        }
                    },
                }
                for name, prefix in (("job", self.job_prefix), ("model", self.model_prefix))
            ],
            "OutputDataConfig": {
                "S3OutputPath": self._uri(self.output_prefix),
                "CompressionType": "NONE",
                **self._key(),
            },
            "ResourceConfig": self._cluster(),
            "StoppingCondition": {"MaxRuntimeInSeconds": settings.max_seconds},
            "EnableNetworkIsolation": settings.is_isolated,
            **self._vpc(),
            "Tags": settings.all_tags,
        }

    def _uri(self, prefix: str) -> str:
        return self.settings.url(prefix).removesuffix("/")

    def _key(self) -> dict[str, str]:
        return {"KmsKeyId": self.settings.kms_key} if self.settings.kms_key else {}

    def _cluster(self) -> dict[str, Any]:
        """The instance. SageMaker refuses a disk larger than the local NVMe,
        and a KMS key for that.
        """
        local = self.build.gpu.local_storage_gb
        wanted = self.settings.volume_gb
        return {
            "InstanceCount": 1,
            "InstanceType": self.build.gpu.name,
            "VolumeSizeInGB": min(wanted, local) if local else wanted,
        }

    def _vpc(self) -> dict[str, Any]:
        settings = self.settings
        if not settings.subnets:
            return {}
        return {
            "VpcConfig": {
                "SecurityGroupIds": [*settings.security_groups],
                "Subnets": [*settings.subnets],
            }
        }
