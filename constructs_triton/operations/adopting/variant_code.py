"""The properties of a variant as keyword arguments: instances, image, variables, timeouts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from constructs_triton.errors import InvalidValueError
from constructs_triton.facts import images
from constructs_triton.facts.environment import variables
from constructs_triton.facts.inference_ami import default_inference_ami
from constructs_triton.facts.instance_types import InstanceType
from constructs_triton.facts.versions import is_at_least
from constructs_triton.operations.adopting.models import AdoptedModels
from constructs_triton.operations.adopting.python_text import Call, Expression, Items, literal, quoted
from constructs_triton.operations.adopting.stack_code import StackCode

__all__ = [
    "container_options",
    "duration",
    "first_instance_type",
    "image_version_of",
    "model_source",
    "variant_options",
]

_ECR = re.compile(
    r"(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.([a-z.]+)/([^:@]+)(?::([\w.-]+)|@(sha256:[0-9a-f]{64}))?"
)
_DEFAULT_MODEL = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
_PING_MODE = "SAGEMAKER_TRITON_PING_MODE"
Answer = Mapping[str, Any]
Options = dict[str, Expression]

_VARIANT = frozenset(
    [
        "VariantName",
        "ModelName",
        "InitialInstanceCount",
        "InstanceType",
        "InitialVariantWeight",
        "CoreDumpConfig",
        "VolumeSizeInGB",
        "ModelDataDownloadTimeoutInSeconds",
        "ContainerStartupHealthCheckTimeoutInSeconds",
        "EnableSSMAccess",
        "ManagedInstanceScaling",
        "RoutingConfig",
        "InferenceAmiVersion",
        "CapacityReservationConfig",
        "InstancePools",
        "VariantInstanceProvisionTimeoutInSeconds",
    ]
)
_CONTAINER = frozenset(
    [
        "Image",
        "Mode",
        "ModelDataUrl",
        "ModelDataSource",
        "Environment",
        "ModelPackageName",
        "MultiModelConfig",
        "ContainerHostname",
        "ImageConfig",
    ]
)


def first_instance_type(variant: Answer) -> str | None:
    """Return the instance type of a variant, or the first one of its pools."""
    pools = sorted(variant.get("InstancePools", []), key=lambda each: each.get("Priority", 0))
    found = variant.get("InstanceType") or next((each["InstanceType"] for each in pools), None)
    return None if found is None else str(found)


def image_version_of(container: Answer) -> str | None:
    """Return the Triton release of a container's image; ``None`` if its tag does not have it."""
    return images.version_of_image(container.get("Image"))


def duration(seconds: float) -> Call:
    """Return the code of a duration, in minutes where that is exact."""
    if seconds % 60 == 0 and seconds > 0:
        return Call("cdk.Duration.minutes", [str(int(seconds // 60))])
    return Call("cdk.Duration.seconds", [str(int(seconds))])


def model_source(code: StackCode, models: AdoptedModels, use: str = "model") -> Call:
    """Return the code of the source of a repository."""
    source = code.ours("ModelSource")
    if models.kind == "package":
        return Call(f"{source}.from_model_package", [literal(models.place)])
    if models.is_local:
        function = "from_directory" if models.kind == "directory" else "from_archive"
        return Call(f"{source}.{function}", [f"PROJECT / {quoted(models.place)}"])
    bucket = code.bucket(models.bucket, use, models.key_arn)
    function = {"bucket": "from_bucket", "files": "from_s3_prefix", "prefix": "from_archive_prefix"}[
        models.kind
    ]
    return Call(f"{source}.{function}", [bucket, literal(models.place)])


def variant_options(
    code: StackCode, variant: Answer, *, is_asynchronous: bool, models: AdoptedModels
) -> Options:
    """Return the options of a variant apart from its models and its container."""
    name = variant["VariantName"]
    running = code.running.running_variant(name)
    where = f"variant {name}"
    code.adoption.refuse_rest(where, variant, _VARIANT)
    count = running.get("DesiredInstanceCount", variant.get("InitialInstanceCount", 1))
    weight = running.get("DesiredWeight", variant.get("InitialVariantWeight", 1))
    is_shadow = all(each is not variant for each in code.running.config["ProductionVariants"])
    path = f"DescribeEndpointConfig.{'Shadow' if is_shadow else ''}ProductionVariants[{name}]"
    found: Options = {}
    if count != variant.get("InitialInstanceCount", count):
        code.adoption.differ(f"{path}.InitialInstanceCount", f"{max(1, count)}, the instances that run now")
    if count > 1:
        found["initial_instance_count"] = str(count)
    if weight != variant.get("InitialVariantWeight", weight):
        code.adoption.differ(f"{path}.InitialVariantWeight", f"{weight:g}, the weight that is set now")
    if weight != 1:
        found["initial_variant_weight"] = f"{weight:g}"
    found |= _machine(code, variant, path, models)
    found |= _routing(code, variant, path, is_plain=not (is_asynchronous or models.is_multi_model))
    return found


def _machine(code: StackCode, variant: Answer, path: str, models: AdoptedModels) -> Options:
    found: Options = {}
    if variant.get("VolumeSizeInGB"):
        found["volume_size"] = Call("cdk.Size.gibibytes", [str(variant["VolumeSizeInGB"])])
    timeouts = {
        "container_startup_health_check_timeout": "ContainerStartupHealthCheckTimeoutInSeconds",
        "model_data_download_timeout": "ModelDataDownloadTimeoutInSeconds",
        "variant_instance_provision_timeout": "VariantInstanceProvisionTimeoutInSeconds",
    }
    for keyword, member in timeouts.items():
        if variant.get(member):
            found[keyword] = duration(variant[member])
        elif models.is_local and keyword != "variant_instance_provision_timeout":
            code.adoption.differ(f"{path}.{member}", "set, derived from the size of the models")
    if variant.get("EnableSSMAccess"):
        found["enable_ssm_access"] = "True"
    reservation = variant.get("CapacityReservationConfig")
    if reservation:
        arn = {"ml_reservation_arn": literal(reservation["MlReservationArn"])}
        found["capacity_reservation"] = Call(code.ours("CapacityReservationConfig"), [], arn)
    dump = variant.get("CoreDumpConfig")
    if dump:
        bucket, _, prefix = dump["DestinationS3Uri"].removeprefix("s3://").partition("/")
        keywords: Options = {"bucket": code.bucket(bucket, "dump"), "prefix": literal(prefix.rstrip("/"))}
        key = code.key(dump["KmsKeyId"], "dump") if dump.get("KmsKeyId") else None
        found["core_dump"] = Call(
            code.ours("CoreDump"), [], {**keywords, **({"encryption_key": key} if key else {})}
        )
    return found


def _routing(code: StackCode, variant: Answer, path: str, *, is_plain: bool) -> Options:
    strategy = variant.get("RoutingConfig", {}).get("RoutingStrategy")
    if strategy == "LEAST_OUTSTANDING_REQUESTS" and is_plain:
        return {}  # the default of the construct
    if strategy is not None:
        return {"routing_strategy": literal(strategy)}
    if not is_plain:
        return {}
    code.adoption.differ(
        f"{path}.RoutingConfig.RoutingStrategy",
        "RANDOM, SageMaker's default, written out; the default of the construct is another",
    )
    return {"routing_strategy": '"RANDOM"'}


def container_options(
    code: StackCode, model_name: str, container: Answer, variant: Answer, models: AdoptedModels
) -> Options:
    """Return the options of a container: image, variables and AMI."""
    where = f"model {model_name}"
    code.adoption.refuse_rest(where, container, _CONTAINER)
    if container.get("ImageConfig", {}).get("RepositoryAccessMode") == "Vpc":
        code.adoption.refuse(
            "image-config", f"{where}: ImageConfig is not carried over; set it by hand in app.py"
        )
    path = "DescribeModel.PrimaryContainer"
    if container.get("ContainerHostname"):
        code.adoption.differ(f"{path}.ContainerHostname", "none; it has no effect with one container")
    if "Mode" not in container:
        code.adoption.differ(f"{path}.Mode", "SingleModel, SageMaker's default, written out")
    if models.is_local:
        code.adoption.differ(f"{path}.ModelDataUrl", "the archive that the CDK uploads")
    found: Options = {}
    if models.kind != "package":
        found |= _image(code, container, variant)
    found |= _environment(code, model_name, container, models)
    found |= _ami(container, variant)
    return found


def _image(code: StackCode, container: Answer, variant: Answer) -> Options:
    uri, version = str(container.get("Image", "")), image_version_of(container)
    image = code.ours("TritonImage")
    if version is not None and uri == _published(code, version, variant):
        return {"image": Call(f"{image}.dlc", [f'"{version}"'])}
    release: Options = {} if version is None else {"triton_version": f'"{version}"'}
    match = _ECR.fullmatch(uri)
    if match is None or match[2] != code.running.region:
        return {"image": Call(f"{image}.from_registry", [literal(uri)], release)}
    account, region, _, repository, tag, digest = match.groups()
    tag, digest = _pinned(code, uri, tag, digest)
    module = code.module("ecr", "aws_ecr")
    if account == code.running.account:
        arguments = ["self", code.new_id("ImageRepository"), literal(repository)]
        reference = Call(f"{module}.Repository.from_repository_name", arguments)
    else:
        arn = f"arn:aws:ecr:{region}:{account}:repository/{repository}"
        keywords: Options = {"repository_arn": literal(arn), "repository_name": literal(repository)}
        construct_id = code.new_id("ImageRepository")
        reference = Call(f"{module}.Repository.from_repository_attributes", ["self", construct_id], keywords)
    variable = code.shared("image", f"{account}/{repository}", "image_repository", reference)
    return {
        "image": Call(f"{image}.from_ecr_repository", [variable, literal(tag or digest or "latest")], release)
    }


def _pinned(code: StackCode, uri: str, tag: str | None, digest: str | None) -> tuple[str | None, str | None]:
    """Return the tag or the digest to use: the digest, if the tag names another image by now."""
    running, now = code.running.running_digest(uri), code.running.tag_digests.get(uri)
    if running is None or now is None or running == now:
        return tag, digest
    code.adoption.differ(
        "DescribeModel.PrimaryContainer.Image",
        f"{running}, the digest that runs, since the tag of {uri} names another image by now",
    )
    return None, running


def _published(code: StackCode, version: str, variant: Answer) -> str | None:
    type_name = first_instance_type(variant)
    try:
        is_cpu = type_name is not None and not InstanceType.of(type_name).has_gpu
        return images.image_uri(code.running.region, version, cpu=is_cpu)
    except InvalidValueError:
        return None


def _environment(code: StackCode, model_name: str, container: Answer, models: AdoptedModels) -> Options:
    given: Mapping[str, str] = container.get("Environment", {})
    path, version = "DescribeModel.PrimaryContainer.Environment", image_version_of(container)
    verbose = variables()["log_verbose"]
    reads_verbose = version is None or is_at_least(version, verbose.since)
    if verbose.name not in given and reads_verbose and models.kind != "package":
        code.adoption.differ(
            f"{path}.{verbose.name}", "false; the image's default writes every request to the log"
        )
    if models.is_multi_model and _PING_MODE not in given:
        code.adoption.differ(
            f"{path}.{_PING_MODE}", "live, so that one model that fails to load does not stop the endpoint"
        )
    if models.model is not None and _DEFAULT_MODEL not in given:
        code.adoption.differ(f"{path}.{_DEFAULT_MODEL}", f"{models.model}, the model that is served now")
    own = {name: value for name, value in given.items() if name != _DEFAULT_MODEL or models.model is None}
    if not own:
        return {}
    values = {
        quoted(name): code.value(name, value, f"model {model_name}") for name, value in sorted(own.items())
    }
    return {"environment": Items(values)}


def _ami(container: Answer, variant: Answer) -> Options:
    """Leave the AMI out where the construct would choose the same."""
    given, type_name = variant.get("InferenceAmiVersion"), first_instance_type(variant)
    if type_name is None:
        return {}
    derived = default_inference_ami(image_version_of(container), InstanceType.of(type_name)).version
    if given == derived and not variant.get("InstancePools"):
        return {}
    if given is None and derived is None:
        return {}
    return {"inference_ami_version": "None" if given is None else literal(given)}
