"""A variant as keyword arguments: its instances, and the container that runs on them."""

from __future__ import annotations

import re
from collections.abc import Collection

from constructs_triton_core.cloud_assembly.endpoints import instance_types_of
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.facts.versions import is_at_least
from constructs_triton_tools.operations.adopting.models import AdoptedModels
from constructs_triton_tools.operations.adopting.python_text import (
    Answer,
    Items,
    Options,
    call,
    literal,
    options_of,
    quoted,
)
from constructs_triton_tools.operations.adopting.stack.endpoint_options import place_of
from constructs_triton_tools.operations.adopting.stack.stack_code import Repositories, StackCode
from triton_model_check.facts import images
from triton_model_check.facts.environment import variables
from triton_model_check.facts.inference_ami import default_inference_ami

_ECR = re.compile(
    r"(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.([a-z.]+)/([^:@]+)(?::([\w.-]+)|@(sha256:[0-9a-f]{64}))?"
)
_DEFAULT_MODEL = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
_PING_MODE = "SAGEMAKER_TRITON_PING_MODE"
_TIMEOUTS = ("ContainerStartupHealthCheckTimeoutInSeconds", "ModelDataDownloadTimeoutInSeconds")


# Instances.


def instance_options(repositories: Repositories, variant: Answer) -> Options:
    """Return the instance type, or the pools with the models that some types have."""
    types = instance_types_of(variant)
    if not variant.get("InstancePools"):
        return {"instance_type": call("InstanceType.of", literal(types[0]))}
    models = {
        pool["InstanceType"]: pool.get("ModelNameOverride") for pool in variant["InstancePools"]
    }
    pools = []
    for instance_type in types:
        found = (
            repositories.of(models[instance_type], instance_type) if models[instance_type] else None
        )
        own: Options = (
            {} if found is None else {"model_repository": found[0], **model_option(found[1])}
        )
        pools.append(call("InstancePool", call("InstanceType.of", literal(instance_type)), **own))
    return {"instance_pools": Items(pools)}


def model_option(models: AdoptedModels, keyword: str = "model") -> Options:
    """Return the model that is served; nothing if each request names its model."""
    return {} if models.model is None else {keyword: literal(models.model)}


def fleet_options(code: StackCode, variant: Answer) -> Options:
    """Return the number of instances and the share of the traffic, as they are now."""
    name = variant["VariantName"]
    running = code.running.running_variant(name)
    count = running.get("DesiredInstanceCount", variant.get("InitialInstanceCount", 1))
    weight = running.get("DesiredWeight", variant.get("InitialVariantWeight", 1))
    path = _path(code, variant)
    if count != variant.get("InitialInstanceCount", count):
        code.adoption.differ(
            f"{path}.InitialInstanceCount", f"{max(1, count)}, the instances that run now"
        )
    if weight != variant.get("InitialVariantWeight", weight):
        code.adoption.differ(
            f"{path}.InitialVariantWeight", f"{weight:g}, the weight that is set now"
        )
    return {
        **({"initial_instance_count": literal(count)} if count > 1 else {}),
        **({"initial_variant_weight": literal(weight)} if weight != 1 else {}),
    }


def machine_options(code: StackCode, variant: Answer, models: AdoptedModels) -> Options:
    """Return the volume, the timeouts and the access to the instances of a variant."""
    found: Options = {
        **options_of(variant, "VolumeSizeInGB"),
        **timeout_options(code, _path(code, variant), variant, models),
        **options_of(variant, "VariantInstanceProvisionTimeoutInSeconds", "EnableSSMAccess"),
    }
    reservation = options_of(variant.get("CapacityReservationConfig") or {}, "MlReservationArn")
    if reservation:
        found["capacity_reservation"] = call("CapacityReservationConfig", **reservation)
    dump = variant.get("CoreDumpConfig")
    if dump:
        bucket, prefix = place_of(dump["DestinationS3Uri"])
        found["core_dump"] = call(
            "CoreDump",
            bucket=code.bucket(bucket, "dump"),
            prefix=literal(prefix),
            **code.key(dump.get("KmsKeyId"), "dump"),
        )
    return found


def timeout_options(code: StackCode, path: str, answer: Answer, models: AdoptedModels) -> Options:
    """Return the timeouts; the constructs derive them from the size of models
    in the app's folder.
    """
    if models.is_local:
        for timeout in _TIMEOUTS:
            if not answer.get(timeout):
                code.adoption.differ(
                    f"{path}.{timeout}", "set, derived from the size of the models"
                )
    return options_of(answer, *_TIMEOUTS)


def routing_options(code: StackCode, variant: Answer, *, is_default: bool) -> Options:
    """Return the routing strategy.

    ``is_default``: the construct has one without it, unlike SageMaker.
    """
    routing = variant.get("RoutingConfig", {})
    strategy = routing.get("RoutingStrategy")
    if strategy == "LEAST_OUTSTANDING_REQUESTS" and is_default:
        return {}
    if strategy is None and is_default:
        code.adoption.differ(
            f"{_path(code, variant)}.RoutingConfig.RoutingStrategy",
            "RANDOM, SageMaker's default, written out; the default of the construct is another",
        )
        strategy = "RANDOM"
    prefix = options_of(
        routing.get("PrefixAwareRoutingConfig", {}), "PrefixLength", "ConcurrencyThreshold"
    )
    return {} if strategy is None else {"routing_strategy": literal(strategy), **prefix}


def ami_options(variant: Answer, versions: Collection[str | None]) -> Options:
    """Return the AMI; nothing where the construct chooses the same for images
    of these Triton releases.
    """
    given = variant.get("InferenceAmiVersion")
    first_type = InstanceType.of(instance_types_of(variant)[0])
    derived = {default_inference_ami(version, first_type).version for version in versions}

    # Of several types, the construct may choose for another one.
    may_be_of_other_type = given and variant.get("InstancePools")
    if derived == {given} and not may_be_of_other_type:
        return {}
    return {"inference_ami_version": literal(given)}


def _path(code: StackCode, variant: Answer) -> str:
    """Return where a variant is in the answers of AWS, for a message."""
    is_shadow = all(other is not variant for other in code.running.config["ProductionVariants"])
    kind = "ShadowProductionVariants" if is_shadow else "ProductionVariants"
    return f"DescribeEndpointConfig.{kind}[{variant['VariantName']}]"


# The container.


def container_options(
    code: StackCode, model_name: str, variant: Answer, models: AdoptedModels
) -> Options:
    """Return the image and the variables of the container of a model."""
    container = code.running.container(model_name)
    if container.get("ImageConfig", {}).get("RepositoryAccessMode") == "Vpc":
        code.adoption.refuse(
            "image-config",
            f"model {model_name}: ImageConfig is not carried over; set it by hand in app.py",
        )
    path = "DescribeModel.PrimaryContainer"
    if container.get("ContainerHostname"):
        code.adoption.differ(
            f"{path}.ContainerHostname", "none; it has no effect with one container"
        )
    if "Mode" not in container:
        code.adoption.differ(f"{path}.Mode", "SingleModel, SageMaker's default, written out")
    if models.is_local:
        code.adoption.differ(f"{path}.ModelDataUrl", "the archive that the CDK uploads")
    image: Options = {} if models.kind == "package" else _image(code, container, variant)
    return image | _environment(code, model_name, container, models)


def _image(code: StackCode, container: Answer, variant: Answer) -> Options:
    uri = str(container.get("Image", ""))
    version = images.version_of_image(uri)
    if version is not None and uri == _published(code, version, variant):
        return {"image": call("TritonImage.dlc", literal(version))}
    release: Options = {} if version is None else {"triton_version": literal(version)}
    match = _ECR.fullmatch(uri)
    if match is None or match[2] != code.running.region:
        return {"image": call("TritonImage.from_registry", literal(uri), **release)}
    account, region, _, repository, tag, digest = match.groups()
    variable = "image_repository"
    function = "ecr.Repository.from_repository_"
    if account == code.running.account:
        reference = code.reference(variable, f"{function}name", literal(repository))
    else:
        arn = literal(f"arn:aws:ecr:{region}:{account}:repository/{repository}")
        names: Options = {"repository_arn": arn, "repository_name": literal(repository)}
        reference = code.reference(variable, f"{function}attributes", **names)
    pinned = _pinned_digest(code, uri) or tag or digest or "latest"
    return {"image": call("TritonImage.from_ecr_repository", reference, literal(pinned), **release)}


def _pinned_digest(code: StackCode, uri: str) -> str | None:
    """Return the digest that runs, if the tag of the image names another one by now."""
    running = code.running.running_digest(uri)
    now = code.running.tag_digests.get(uri)
    if running is None or now is None or running == now:
        return None
    code.adoption.differ(
        "DescribeModel.PrimaryContainer.Image",
        f"{running}, the digest that runs, since the tag of {uri} names another image by now",
    )
    return running


def _published(code: StackCode, version: str, variant: Answer) -> str | None:
    """Return AWS's image for the first instance type; ``None`` if there is none."""
    try:
        is_cpu = not InstanceType.of(instance_types_of(variant)[0]).has_gpu
        return images.image_uri(code.running.region, version, cpu=is_cpu)
    except InvalidValueError:
        return None


def _environment(
    code: StackCode, model_name: str, container: Answer, models: AdoptedModels
) -> Options:
    given = container.get("Environment", {})
    version = images.version_of_image(container.get("Image"))
    verbose = variables()["log_verbose"]
    has_verbose = version is None or is_at_least(version, verbose.since)
    added = {}
    if models.kind != "package" and has_verbose:
        added[verbose.name] = "false; the image's default writes every request to the log"
    if models.is_multi_model:
        added[_PING_MODE] = "live, so that one model that fails to load does not stop the endpoint"
    if models.model is not None:
        added[_DEFAULT_MODEL] = f"{models.model}, the model that is served now"

    for name, reason in added.items():
        if name not in given:
            code.adoption.differ(f"DescribeModel.PrimaryContainer.Environment.{name}", reason)
    values = {
        quoted(name): code.value(name, value, f"model {model_name}")
        for name, value in sorted(given.items())
        if name != _DEFAULT_MODEL or models.model is None
    }
    return {"environment": Items(values)} if values else {}
