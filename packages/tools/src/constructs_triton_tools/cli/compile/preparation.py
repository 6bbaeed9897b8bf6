"""Turns the arguments into requests, without a call to AWS."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constructs_triton_core.aws_reader import region_of
from constructs_triton_core.errors import InvalidValueError, RepositoryError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.program.exit_codes import FoundWrongError
from constructs_triton_core.untrusted.drafts import temporary_folder
from constructs_triton_tools.building.plans.job_request import (
    JobRequest,
    JobSettings,
    account_of_role,
    chosen_kind,
    job_name,
)
from constructs_triton_tools.building.plans.onnx_model import FaultyModelError, OnnxModelFile
from constructs_triton_tools.building.plans.options import BuildOptions
from constructs_triton_tools.building.plans.plan_build import BuildImage, PlanBuild, group_by_gpu
from constructs_triton_tools.building.plans.plan_config import (
    derived_config,
    existing_config,
    usual_batch,
)
from constructs_triton_tools.building.plans.shapes import (
    input_ranges,
    read_input_ranges,
    shape_arguments,
)
from constructs_triton_tools.cli.compile.arguments import BUCKET_VARIABLE, ROLE_VARIABLE
from constructs_triton_tools.cli.options import chosen_fields
from triton_model_check.facts.compatibility import VariantFacts, check_compatibility
from triton_model_check.facts.images import image_uri, image_version, version_of_image
from triton_model_check.model_config.text import format_model_config
from triton_model_check.model_repository import ModelRepository

if TYPE_CHECKING:
    import boto3

_OF_ONNX_RUNTIME = ("onnx-version", "onnx-operator")


@dataclass(frozen=True)
class Compilation:
    """What one call of the command builds: one job for each type of GPU,
    with the same ``config.pbtxt``.
    """

    name: str
    config_text: str
    requests: tuple[JobRequest, ...]
    image_version: str | None  # None if it is not known
    warnings: tuple[Finding, ...]


def job_settings(arguments: argparse.Namespace, session: boto3.Session) -> JobSettings:
    """Return where the job runs. The session is asked for its Region only.

    Raises:
        InvalidValueError: Region or role are missing, or a value is wrong.
    """
    region = region_of(session)
    role = arguments.role or os.environ.get(ROLE_VARIABLE)
    if not role:
        raise InvalidValueError(
            "--role: must be the ARN of the job's role; set --role, or the variable "
            f"{ROLE_VARIABLE}. `constructs-triton compile --policy job --role ARN` prints the "
            "policy of a role that you create"
        )
    account = account_of_role(role)
    bucket = arguments.bucket or os.environ.get(BUCKET_VARIABLE) or f"sagemaker-{region}-{account}"
    return JobSettings(region, role, bucket, **chosen_fields(arguments, JobSettings))


def prepare(arguments: argparse.Namespace, settings: JobSettings) -> Compilation:
    """Read the model, and return the requests.

    Raises:
        ConstructsTritonError: the model, the configuration or the options do not fit each other.
    """
    if arguments.model is None:
        raise InvalidValueError(
            "MODEL: is missing; pass the path of an ONNX file, or the folder of a model"
        )
    if not arguments.instance_types:
        raise InvalidValueError(
            "--instance-type: is missing; set the instance type of the endpoint, "
            "for example ml.g5.xlarge"
        )
    groups = group_by_gpu(arguments.instance_types, arguments.build_on)
    image, release = _image(arguments, settings.region)
    warnings = tuple(_compatibility(groups, release))
    path, config_path = _paths(arguments)
    model = _read(path)
    given = read_input_ranges(arguments.inputs)
    config = _config(arguments, model, config_path, image.tensorrt, given)
    batch = usual_batch(config, arguments.opt_batch_size)
    ranges = input_ranges(model.described, config, given, batch)
    shapes = tuple(shape_arguments(ranges))
    options = BuildOptions(**chosen_fields(arguments, BuildOptions))
    builds = [
        PlanBuild(
            model=model,
            arguments=(
                *shapes,
                *options.arguments(image.tensorrt, gpu, _shown_image(image, release)),
            ),
            image=image,
            gpu=gpu,
            instance_types=types,
            ranges=ranges,
        )
        for gpu, types in groups.items()
    ]
    requests = tuple(_request(build, config.name, settings, arguments.job_kind) for build in builds)
    return Compilation(config.name, format_model_config(config), requests, release, warnings)


def _request(build: PlanBuild, name: str, settings: JobSettings, kind: Any) -> JobRequest:
    now = datetime.now(UTC)
    moment = (
        f"{now:%m%d-%H%M%S}{now.microsecond // 1000:03}"  # names of jobs are unique in an account
    )
    return JobRequest(
        job_name(build, name, moment), chosen_kind(build, settings.region, kind), build, settings
    )


def _image(arguments: argparse.Namespace, region: str) -> tuple[BuildImage, str | None]:
    """Return the image, and its Triton release if it is known."""
    if arguments.image is None:
        release = arguments.image_version
        tensorrt = arguments.tensorrt or image_version(release).tensorrt
        return BuildImage(
            image_uri(region, release, cpu=False), f"aws-{release}", tensorrt
        ), release
    release = version_of_image(arguments.image)
    # The tag of an image with another name may be a version of its own.
    is_triton = release is not None and "tritonserver" in arguments.image
    tensorrt = arguments.tensorrt or (
        image_version(release).tensorrt if release and is_triton else None
    )
    return BuildImage(arguments.image, arguments.image, tensorrt), release if is_triton else None


def _shown_image(image: BuildImage, release: str | None) -> str:
    is_known = release and image.identity.startswith("aws-")
    return f"image {release}" if is_known else f"image {image.uri}"


def _compatibility(
    groups: dict[InstanceType, tuple[str, ...]], release: str | None
) -> Iterator[Finding]:
    for gpu in groups:
        for finding in check_compatibility(VariantFacts(instance_type=gpu, image_version=release)):
            if finding.severity is Severity.ERROR:
                raise InvalidValueError(f"--instance-type: {finding.message}; {finding.hint}")
            yield finding


# --- the model ------------------------------------------------------------------------------------


def _paths(arguments: argparse.Namespace) -> tuple[Path, Path | None]:
    """Return the ONNX file, and the configuration if there is one."""
    model: Path = arguments.model
    config: Path | None = arguments.config
    if not os.path.lexists(model):
        raise InvalidValueError(
            f"{model}: does not exist; pass the path of an ONNX file, or the folder of a model"
        )
    if not model.is_dir():
        return model, config
    if config is None and (model / "config.pbtxt").is_file():
        config = model / "config.pbtxt"
    versions = sorted(
        (folder for folder in model.iterdir() if folder.name.isdecimal()),
        key=lambda folder: int(folder.name),
    )
    for version in reversed(versions):
        if (version / "model.onnx").exists():
            return version / "model.onnx", config
    raise InvalidValueError(
        f"{model}: has no 1/model.onnx; pass the path of the ONNX file, and --config"
    )


def _read(path: Path) -> OnnxModelFile:
    try:
        return OnnxModelFile.read(path)
    except FaultyModelError as error:
        raise FoundWrongError(str(error)) from None


def _config(
    arguments: argparse.Namespace,
    model: OnnxModelFile,
    config_path: Path | None,
    tensorrt: str | None,
    given: Any,
) -> Any:
    if config_path is None:
        name = arguments.name or (
            arguments.model.resolve().name if arguments.model.is_dir() else model.path.stem
        )
        return derived_config(model, name, arguments.max_batch_size, given, tensorrt)
    config = existing_config(config_path, arguments.name)
    if arguments.max_batch_size is not None:
        config.max_batch_size = arguments.max_batch_size
    if (
        tensorrt is None or int(tensorrt.split(".")[0]) >= 10
    ):  # version 8 has other data types than the file
        _check_with_onnx(config, model, config_path)
    return config


def _check_with_onnx(config: Any, model: OnnxModelFile, config_path: Path) -> None:
    """Compare the configuration with the file before a GPU is paid for, as for ONNX Runtime."""
    message = type(config)()
    message.CopyFrom(config)
    message.backend = "onnxruntime"
    message.platform = ""
    with temporary_folder() as scratch:
        folder = scratch / message.name
        for name, source in model.files.items():
            (folder / "1" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "1" / name).symlink_to(source.resolve())
        (folder / "config.pbtxt").write_text(format_model_config(message), encoding="utf-8")
        report = ModelRepository.from_directory(scratch).check()
    errors = [error for error in report.errors if error.code not in _OF_ONNX_RUNTIME]
    if errors:
        raise RepositoryError(str(config_path), errors)
