"""Where a model repository will run: platform, machine and image.

It is a plain value, so a repository can be checked without any construct. ``None`` means unknown,
and the checks that depend on it are skipped. With ``Target()`` nothing is known except that
SageMaker runs the repository on a single-model endpoint.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.facts.versions import is_at_least
from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.facts.image_tags import FLAVORS
from triton_model_check.facts.images import DEFAULT_VERSION
from triton_model_check.facts.published import load
from triton_model_check.facts.releases import newest_known_release, release
from triton_model_check.model_config.server_answer import ServerAnswer
from triton_model_check.onnx_runtimes.asking import Asking

__all__ = [
    "ALL_MODELS",
    "OTHER_NAME",
    "PLATFORMS",
    "SAGEMAKER",
    "SERVERS",
    "Platform",
    "Target",
    "read_platform",
    "read_size",
]

Mode = Literal["single", "multi-model"]
Platform = Literal[
    "server",
    "kserve",
    "docker",
    "kubernetes",
    "dynamo",
    "sagemaker",
    "sagemaker-multi-model",
]
OTHER_NAME = "layout-name-differs"
"""The code of a finding that only a multi-model endpoint does not have: its front end replaces the
``name`` of each model that it serves.
"""
SERVERS: tuple[Platform, ...] = ("server", "kserve", "docker", "kubernetes", "dynamo")
"""The platforms where Triton alone decides what loads."""
SAGEMAKER: tuple[Platform, ...] = ("sagemaker", "sagemaker-multi-model")
"""The platforms where SageMaker's front end decides too."""
PLATFORMS = SERVERS + SAGEMAKER
ALL_MODELS = "*"
"""What ``--load-model`` has for all models."""
COMPLETES_SINCE = "22.07"
"""The first release that completes configurations from models by default."""
_SCRIPT_SINCE = "22.05"
_SIZE = re.compile(r"(\d{1,15})([kmg]?)i?b?", re.IGNORECASE)


def read_platform(place: str, text: str) -> Platform:
    """Return the platform of a name; ``place`` begins the message of the error."""
    for each in PLATFORMS:
        if text == each:
            return each
    hint = did_you_mean(text, PLATFORMS, f"use one of {quoted(PLATFORMS)}")
    raise InvalidValueError(f'{place}: must be a target, got "{text}"; {hint}')


def read_size(place: str, text: str) -> int:
    """Return the bytes of a size as Docker and Kubernetes write it: ``256m``, ``1g`` or ``1Gi``."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise InvalidValueError(
            f'{place}: must be a size, got "{text}"; write for example 256m or 1g'
        )
    return int(found[1]) << 10 * " kmg".index(found[2].lower() or " ")


class ArchiveContent(NamedTuple):
    """One archive of a multi-model endpoint: the model it is meant to serve, and all folders in it.

    ``is_given``: whether the user supplied the archive, instead of packing making it for that
    model.
    """

    model: str
    folders: tuple[str, ...]
    is_given: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """The place that will run a model repository.

    ``platform``
        ``"server"``: Triton on a machine. ``"docker"``, ``"kubernetes"``, ``"kserve"``: in a
        container of one of these. ``"dynamo"``: in the Triton runtime of NVIDIA Dynamo.
        ``"sagemaker"``: a single-model endpoint with one archive,
        unpacked into ``/opt/ml/model``. ``"sagemaker-multi-model"``: one archive for each model,
        loaded by name on its first request.
    ``gpu_count``
        Number of NVIDIA GPUs of one instance; ``0`` is a CPU instance.
    ``gpu_memory_mib``
        Memory of **each** GPU, in MiB.
    ``gpu_model``, ``compute_capability``
        Model of the GPUs, such as ``"A10G"``, and their CUDA compute capability, such as ``"8.6"``.
    ``memory_gib``
        Main memory of one instance, in GiB; up to half of it becomes ``/dev/shm``.
    ``max_memory_mib``
        What the container may use of the main memory, in MiB, as ``max_memory`` of an inference
        component has it; ``None`` is all of it.
    ``model_load_gpu_limit``
        Part of the memory of each GPU that models may fill, as the server's option of this name has
        it; ``None`` is all of it.
    ``storage_gb``
        Size of the disk for the unpacked models, in GB.
    ``image_version``
        Triton image version such as ``"26.05"``.
    ``image_flavor``
        Flavor of NVIDIA's image, such as ``"vllm-python-py3"``; ``None`` is ``py3``.
    ``default_model``
        Value of ``SAGEMAKER_TRITON_DEFAULT_MODEL_NAME``: the model that ``/invocations`` calls.
    ``local_files``
        ``False`` if weights and version folders are stored elsewhere, so that only the model
        configurations can be checked.
    ``is_prebuilt_image``
        Whether the image is AWS's own, so that its backends are known.
    ``shm_default_byte_size``
        Value of ``SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE``: shared memory of each instance of a
        Python model, in bytes; ``None`` is the default of the image.
    ``shm_growth_byte_size``
        Value of ``SAGEMAKER_TRITON_SHM_GROWTH_BYTE_SIZE``: the step by which it grows, in bytes.
    ``inference_type``
        Value of ``SAGEMAKER_TRITON_INFERENCE_TYPE``: ``"infer"``, ``"generate"`` or
        ``"generate_stream"``.
    ``has_response_cache``
        Whether the server is started with a response cache, by ``--cache-config``.
    ``server_arguments``
        Further arguments of ``tritonserver``, as ``SAGEMAKER_TRITON_ADDITIONAL_ARGS`` has them.
    ``has_network_isolation``
        Whether the containers have no network, so that a model cannot download its weights.
    ``gpus``
        Model and compute capability of each GPU that loads the repository, on an endpoint with
        several instance types.
    ``is_uncompressed``
        Whether the models are stored as files in S3, which has no modes and no links.
    ``python_path``
        Value of ``PYTHONPATH`` in the containers, if it is set.
    ``has_orchestrator``
        Whether TensorRT-LLM starts its own processes, by ``TRTLLM_ORCHESTRATOR``.
    ``shm_bytes``
        Size of ``/dev/shm`` of the container, in bytes. Default on SageMaker: half of the memory.
    ``backends``
        Names of the backends that the server has besides those of the image.
    ``model_config_name``
        Name of the files in ``configs`` that replace ``config.pbtxt``, as ``--model-config-name``
        has it.
    ``load_models``
        The only models that the server loads, as ``--load-model`` has them; empty means all.
    ``onnx_runtime``
        Whether the ONNX Runtime of the image's release is asked about ONNX models: ``"auto"`` asks
        it if it is installed or was fetched before, ``"fetch"`` fetches it from PyPI, and
        ``"never"`` leaves the verdict to the checker's own rules.
    ``is_image_assumed``
        Whether the image is the platform's default, because none was named.
    ``answers``
        What a real server said of the models, as ``check --server`` asks one; empty if none was
        asked.
    """

    platform: Platform = "sagemaker"
    gpu_count: int | None = None
    gpu_memory_mib: int | None = None
    memory_gib: float | None = None
    storage_gb: int | None = None
    image_version: str | None = None
    default_model: str | None = None
    local_files: bool = True
    inference_type: str | None = None
    is_prebuilt_image: bool = True
    shm_default_byte_size: int | None = None
    shm_growth_byte_size: int | None = None
    has_response_cache: bool | None = None
    server_arguments: str = ""
    has_network_isolation: bool | None = None
    has_orchestrator: bool | None = None
    is_uncompressed: bool = False
    python_path: str | None = None
    gpu_model: str | None = None
    compute_capability: str | None = None
    gpus: tuple[tuple[str | None, str | None], ...] = ()
    shm_bytes: int | None = None
    backends: tuple[str, ...] = ()
    model_config_name: str | None = None
    load_models: tuple[str, ...] = ()
    onnx_runtime: Asking = "never"
    answers: tuple[ServerAnswer, ...] = ()
    image_flavor: str | None = None
    max_memory_mib: float | None = None
    model_load_gpu_limit: float | None = None
    is_image_assumed: bool = False

    def answer(self, model_name: str) -> ServerAnswer | None:
        """Return what a real server said of a model, or ``None`` if none was asked."""
        return next((each for each in self.answers if each.model == model_name), None)

    @property
    def image(self) -> str:
        """The release of the image in words, with its flavor, such as ``26.05``."""
        flavor = "" if self.image_flavor is None else f"-{self.image_flavor}"
        return f"{self.image_version}{flavor}"

    @property
    def image_backends(self) -> frozenset[str] | None:
        """The backends of the image; ``None`` if they are not known."""
        if self.image_flavor is not None:
            return FLAVORS.get(self.image_flavor)
        row = release(self.image_version)
        return None if row is None else row.backends

    @property
    def completes_configs(self) -> bool | None:
        """Whether the server completes configurations from models; ``None`` if it is not known.

        It does by default from 22.07 on. SageMaker's start script does not change the default. The
        scripts of releases before 22.05 were not published. Source: triton server, branches r21.08
        to r22.07, ``strict_model_config`` in src/main.cc; docker/sagemaker/serve.
        """
        version = self.image_version
        if version is None or is_at_least(version, COMPLETES_SINCE):
            return True
        if self.is_sagemaker and not is_at_least(version, _SCRIPT_SINCE):
            return None
        return False

    @property
    def is_sagemaker(self) -> bool:
        """Whether the rules of SageMaker's front end apply."""
        return self.platform in SAGEMAKER

    @property
    def mode(self) -> Mode:
        """Whether a SageMaker endpoint has one archive, or one for each model."""
        return "multi-model" if self.platform == "sagemaker-multi-model" else "single"

    @property
    def hardware(self) -> str:
        """What has GPUs and memory, in words for a hint."""
        return "an instance type" if self.is_sagemaker else "a machine"

    @property
    def place(self) -> str:
        """The platform in words, such as ``on a server``."""
        return str(load("targets")["places"][self.platform])

    @classmethod
    def named(cls, platform: Platform, *, instance_type: str | None = None, **known: Any) -> Target:
        """Return the target of a platform: what it is assumed to have, and what is ``known`` of it.

        A ``known`` field with the value ``None`` is not known. The image is the one that the
        constructs use by default on SageMaker, and NVIDIA's newest one whose content is known
        elsewhere, unless the platform has a default. ``instance_type`` adds its published hardware.

        Raises:
            InvalidValueError: ``instance_type`` is not an instance type.
        """
        version = DEFAULT_VERSION if platform in SAGEMAKER else newest_known_release().version
        assumed: dict[str, Any] = {"image_version": version}
        assumed |= load("targets")["assumed"].get(platform, {})
        if instance_type is not None:
            instance = InstanceType.of(instance_type)
            fields = ("gpu_memory_mib", "gpu_model", "compute_capability", "memory_gib")
            assumed |= {field: getattr(instance, field) for field in fields}
            assumed |= {"gpu_count": instance.gpus, "storage_gb": instance.local_storage_gb or None}
        given = {field: value for field, value in known.items() if value is not None}
        assumed["is_image_assumed"] = "image_version" not in given
        return cls(**{"platform": platform, **assumed, **given})
