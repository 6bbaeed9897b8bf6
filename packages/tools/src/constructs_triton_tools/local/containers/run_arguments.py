"""The arguments of ``docker run`` or ``podman run``, as SageMaker runs a container.

Sources: AWS documentation, "Use Your Own Inference Code with Hosting Services" (``serve``,
``/opt/ml/model``, port 8080) and "Create and run multi-model endpoints" (``SAGEMAKER_MULTI_MODEL``,
``/opt/ml/models``). Half of an instance's memory is available as shared memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError, LocalEndpointError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.untrusted.secrets import is_secret
from constructs_triton_tools.local.sources.specs import (
    ContainerSpec,
    EndpointSpec,
    VariantSpec,
    label_of,
    variants_of,
)

#: The port that SageMaker calls.
CONTAINER_PORT = 8080
#: The port of Triton's own HTTP front end, which is not published. It has the statistics of the
#: models.
HTTP_PORT = 8000
_ADDITIONAL = "SAGEMAKER_TRITON_ADDITIONAL_ARGS"
_HTTP_FLAG = "--allow-http"
#: The label of every container of this package.
LABEL = "constructs-triton"
_ECR = re.compile(
    r"(?P<registry>\d{12}\.dkr\.ecr(-fips)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(\.cn)?)/.+"
)


def run_arguments(
    name: str,
    image: str,
    container: ContainerSpec,
    models: Path,
    *,
    shm_bytes: int,
    gpus: Sequence[str],
) -> list[str]:
    """Return the words after the engine's name. ``models`` is the folder of the unpacked models.

    The port is published on 127.0.0.1 only. An isolated container has no network at all.
    """
    target = "/opt/ml/models" if container.is_multi_model else "/opt/ml/model"
    published = ("--publish", f"127.0.0.1::{CONTAINER_PORT}")
    network = ("--network", "none") if container.is_isolated else published
    words = ["run", "--detach", "--pull", "never", "--name", name, "--label", LABEL, *network]
    words += ["--mount", f"type=bind,source={models},target={target},readonly"]
    # On systems with SELinux a container cannot read folders of the host otherwise.
    words += ["--security-opt", "label=disable"]
    words += ["--shm-size", str(shm_bytes), *gpus]
    words += _environment_arguments(container)
    return [*words, image, "serve"]


def secret_environment(container: ContainerSpec) -> dict[str, str]:
    """Return the variables that the engine takes from its own environment.

    Other users of the machine see the arguments of a process, and not its environment.
    """
    return {
        name: value
        for name, value in _environment(container).items()
        if name in container.secrets or is_secret(name, value)
    }


def _environment_arguments(container: ContainerSpec) -> Iterator[str]:
    secrets = secret_environment(container)
    for name, value in _environment(container).items():
        yield "--env"
        # Without a value, docker and podman take that of their own environment.
        yield name if name in secrets else f"{name}={value}"


def shared_memory_bytes(instance_types: Iterable[str], machine_bytes: int) -> int:
    """Return half of the memory of the smallest type, but at most half of that of this machine."""
    smallest_bytes = machine_bytes
    for instance_type in instance_types:
        memory_bytes = _memory_bytes(instance_type)
        if memory_bytes is not None:
            smallest_bytes = min(smallest_bytes, memory_bytes)
    return smallest_bytes // 2


def _memory_bytes(instance_type: str) -> int | None:
    try:
        memory = InstanceType.of(instance_type).memory_gib
    except InvalidValueError:  # a template may name a type that is not published
        return None
    return None if memory is None else int(memory * 2**30)


def _environment(container: ContainerSpec) -> Mapping[str, str]:
    environment = dict(container.environment)
    given = environment.get(_ADDITIONAL, "")
    if _HTTP_FLAG not in given:
        environment[_ADDITIONAL] = f"{given} {_HTTP_FLAG}=true --http-address=127.0.0.1".strip()
    if container.is_multi_model:
        environment["SAGEMAKER_MULTI_MODEL"] = "true"
    return environment


def image_of(endpoint: EndpointSpec, variant: VariantSpec, images: Mapping[str, str]) -> str:
    """Return the image of the template, or the one that ``images`` has for the
    variant or the endpoint.
    """
    names = _names(endpoint, variant)
    image = next((images[name] for name in names if name in images), variant.container.image)
    if not image:
        raise LocalEndpointError(
            f"{endpoint.name}: has no image, because only templates and deployed endpoints name "
            f"one; set --image {endpoint.name}=IMAGE to an image with Triton's `serve` script, "
            "such as nvcr.io/nvidia/tritonserver:24.10-py3"
        )
    return image


def refuse_unused(images: Mapping[str, str], specs: Sequence[EndpointSpec]) -> None:
    """Check that each name of ``images`` is an endpoint, a variant or an image of the run."""
    known: dict[str, None] = {}
    for spec, variant in variants_of(specs):
        known |= dict.fromkeys(name for name in _names(spec, variant) if name)
    for name in images:
        if name not in known:
            raise InvalidValueError(
                f"--image: no endpoint, variant or image has this name, got {name!r}; use one of "
                f"{', '.join(known)}"
            )


def missing_image(label: str, endpoint: str, image: str, engine: str) -> LocalEndpointError:
    """Return the error for an image that is not on this machine, with the commands that pull it."""
    found = _ECR.fullmatch(image)
    login = ""
    if found is not None:
        login = (
            f"\n  aws ecr get-login-password --region {found['region']} | {engine} login "
            f"--username AWS --password-stdin {found['registry']}"
        )
    return LocalEndpointError(
        f"{label}: the image {image} is not on this machine; pull it, or run another image with "
        f"--image {endpoint}=OTHER{login}\n  {engine} pull {image}"
    )


def _names(endpoint: EndpointSpec, variant: VariantSpec) -> tuple[str, ...]:
    """The names by which the image of a variant can be replaced, the most specific first."""
    return (label_of(endpoint, variant), endpoint.name, variant.container.image)
