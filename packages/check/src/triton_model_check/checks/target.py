"""Whether a repository fits its target: image, GPUs, memory, disk and request size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from constructs_triton_core.datatypes import by_data_type
from constructs_triton_core.facts.limits import INVOCATION_PAYLOAD_BYTES
from constructs_triton_core.facts.versions import is_at_least
from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.checks.backend import misspelled
from triton_model_check.checks.image_content import (
    has_own_backend,
    is_reported_as_absent,
    may_have_others,
)
from triton_model_check.checks.instances import instance_count
from triton_model_check.checks.model_under_check import ModelUnderCheck, RepositoryContext
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.facts.images import (
    first_published,
    image_of_backend,
    image_version,
    last_release_with,
    newest_release,
    newest_with,
    published_versions,
)
from triton_model_check.facts.releases import (
    in_words,
    new_fields,
    newest_known_release,
    unknown_facts,
)
from triton_model_check.fixes.steps import remove, unsafe
from triton_model_check.memory.estimate import (
    LoadedModel,
    MemoryEstimate,
    estimate,
    in_units,
)
from triton_model_check.memory.instances import HOST
from triton_model_check.model_config.release_fields import fields_after
from triton_model_check.model_config.schema import data_type_name
from triton_model_check.model_config.target import SAGEMAKER
from triton_model_check.untrusted.budget import count_elements

_PROTO = "triton common protobuf/model_config.proto by release branch"
_MIB = 2**20
_SHARED_MEMORY_DEFAULT = 16 * _MIB


@warning(
    "target-image-unknown",
    "repository",
    source="triton_model_check.facts, images.json",
    hint="update constructs-triton, or acknowledge this if no version of it knows the release",
    server_hint="update triton-model-check, or ignore this if no version of it knows the release",
)
def image_unknown(context: RepositoryContext) -> Iterator[Problem]:
    """The image version is not newer than the table of images of this library.

    What a newer release contains is not known: its backends, Python, ONNX Runtime and TensorRT are
    not checked. What all known releases have in common is assumed.
    """
    version = context.target.image_version
    newest = published_versions()[0] if context.target.is_sagemaker else newest_release()
    if version is None or version == newest or not is_at_least(version, newest):
        return
    unknown = unknown_facts(version)
    consequence = (
        f"its {in_words(unknown)} are not known and not checked"
        if unknown
        else "it is assumed to have what NVIDIA's image of this release has"
    )
    yield Problem(
        f"image {version} is newer than the table of images, which ends at {newest}; {consequence}"
    )


@rule("target-field-too-new", source=_PROTO, before=max(new_fields().values()))
def field_too_new(model: ModelUnderCheck) -> Iterator[Problem]:
    """The image version knows every field.

    An older release of Triton rejects a file with a field or an enum value that a newer release
    added, also if the field has its default value.
    """
    version = model.target.image_version
    if version is None:
        return
    locations = model.folder.locations

    def is_written(path: tuple[str | int, ...]) -> bool:
        return locations is not None and locations.spans(path) is not None

    for field in fields_after(model.config, version, is_written):
        newer = first_published(field.since) if model.target.is_sagemaker else field.since
        other = "use another value" if field.field else f"remove {field.name}"
        yield Problem(
            f"image {version}: {field.said}; it is new in {field.since}",
            field.path,
            f"{other}, or use image version {newer} or newer",
            fix=None if field.field else unsafe(remove()),
        )


@rule("target-backend-removed", source="triton server build.py by release branch", since="25.03")
def backend_removed(model: ModelUnderCheck) -> Iterator[Problem]:
    """The image version contains the backend.

    Release 25.03 removed the TensorFlow backend.
    """
    version = model.target.image_version
    if version is None or not model.backend or may_have_others(model):
        return
    if model.backend in image_version(version).removed_backends:
        last = newest_with if model.target.is_sagemaker else last_release_with
        hint = f"use image version {last(model.backend)}, or convert the model to ONNX"
        place = ("backend",) if model.config.backend else ("platform",)
        message = f'unable to find backend library for backend "{model.backend}" in image {version}'
        yield Problem(message, place, hint)


@rule(
    "target-backend-of-other-image",
    source=(
        "NVIDIA user guide: containers vllm-python-py3 and trtllm-python-py3; "
        "triton server build.py"
    ),
    when=("backend",),
    platforms=(*SAGEMAKER, "kserve"),
)
def backend_of_other_image(model: ModelUnderCheck) -> Iterator[Problem]:
    """AWS's Triton image, or that of KServe, has the backend of a language model.

    The vLLM and TensorRT-LLM backends are in NVIDIA's images ``vllm-python-py3`` and
    ``trtllm-python-py3`` only. The rule skips your own images, and models that contain the library
    of their backend.
    """
    version = model.target.image_version
    if version is None or may_have_others(model):
        return
    if model.target.image_flavor is not None:
        return  # target-backend-absent knows all backends of the image
    other = image_of_backend(model.backend, version)
    if other is None or any(name.startswith("libtriton_") for name in model.folder.entries):
        return
    message = f'image {version} of AWS has no backend "{model.backend}"'
    hint = (
        f"build an image from {other} and use it with TritonImage.from_ecr_repository, or serve "
        "the model with AWS's images for language models"
    )
    if not model.target.is_sagemaker:
        message = f'image {version}-py3 has no backend "{model.backend}"'
        hint = (
            f"use {image_of_backend(model.backend, newest_known_release().version)}, "
            f"and --backends {model.backend}"
        )
    yield Problem(message, ("backend",), hint)


@rule("target-backend-absent", source="triton server build.py by release branch", when=("backend",))
def backend_absent(model: ModelUnderCheck) -> Iterator[Problem]:
    """The image contains the backend, or the model's folder does.

    The rule skips your own images, the backends of ``--backends``, and models that contain
    ``libtriton_*.so`` or a backend in Python. On servers, it skips what ``backend-misspelled``
    reports.
    """
    version = model.target.image_version
    if version is None or may_have_others(model) or model.config.platform == "ensemble":
        return
    backends = model.target.image_backends
    # With a release whose backends are not known, the report says so: see image_content.
    if backends is None or not model.backend:
        return
    if model.backend in backends or is_reported_as_absent(model, version):
        return
    if has_own_backend(model):
        return
    if not model.target.is_sagemaker and any(misspelled(model)):
        return
    image = model.target.image
    message = f'unable to find backend library for backend "{model.backend}" in image {image}'
    hint = did_you_mean(model.backend, backends, f"use one of {quoted(sorted(backends))}")
    if model.target.image_flavor is not None:
        hint = f"use an image with this backend; {image} has only {quoted(sorted(backends))}"
    if not model.target.is_sagemaker:
        hint += f"; if you have added this backend to the server, use --backends {model.backend}"
    yield Problem(message, ("backend",), hint)


@rule(
    "target-tensorrt-without-gpu",
    source="triton tensorrt_backend, ModelInstanceState",
    hint="use an instance type with a GPU, or convert the model to ONNX",
    server_hint="use a machine with a GPU, or convert the model to ONNX",
)
def tensorrt_without_gpu(model: ModelUnderCheck) -> Iterator[Problem]:
    """A TensorRT model needs an instance with a GPU.

    The configuration is valid, but the backend refuses every instance that is not on a GPU.
    """
    if model.backend == "tensorrt" and model.target.gpu_count == 0:
        place = ("backend",) if model.config.backend else ("platform",)
        yield Problem("a TensorRT model needs a GPU, and the instance has none", place)


@rule(
    "target-plan-of-several-gpus",
    "tensorrt",
    rejects=False,
    source="TensorRT: an engine plan file used across different models of devices",
    hint=(
        "set model_repository or model on each InstancePool to a plan that was built for its GPU, "
        "or select plans with cc_model_filenames"
    ),
    platforms=SAGEMAKER,
)
def plan_of_several_gpus(model: ModelUnderCheck) -> Iterator[Problem]:
    """A TensorRT plan is loaded by only one type of GPU.

    A plan is built for one type of GPU. TensorRT does not load it on a GPU of another compute
    capability, and warns on another type of GPU with the same one. A plan that was built with
    hardware compatibility is the exception, which the file does not show: name its repository on
    each ``InstancePool``.
    """
    by_capability = model.config.cc_model_filenames if model.config is not None else {}
    users: dict[str, list[str]] = {}
    for gpu, capability in model.target.gpus:
        if gpu is not None:
            users.setdefault(by_capability.get(capability, ""), []).append(gpu)
    for file, gpus in users.items():
        if len(gpus) > 1:
            plan = f'plan "{file}"' if file else "plan"
            yield Problem(f"one {plan} would be loaded by different GPUs: {quoted(gpus)}")


# --- memory and disk ------------------------------------------------------------------------------


@warning(
    "target-shared-memory",
    "repository",
    source=(
        "triton python_backend, shm-default-byte-size; "
        "AWS documentation: half of the memory is /dev/shm"
    ),
    hint=(
        "lower the count of the instance groups or shm_default_byte_size, "
        "or use an instance type with more memory"
    ),
    platforms=SAGEMAKER,
)
def shared_memory(context: RepositoryContext) -> Iterator[Problem]:
    """The instances of Python models fit into shared memory, which is half of the instance's
    memory.

    Each instance takes the region of ``SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE`` at its start, by
    default 16 MiB, and about 1.25 times the size of its inputs and outputs while it works. All
    models count that can be loaded together; a multi-model endpoint loads the models of each
    archive. When shared memory is full, requests fail.
    """
    memory = context.target.memory_gib
    if memory is None:
        return
    needed = sum(_shared_bytes(context.models[name]) for name in _loaded_at_once(context))
    available = memory * 2**30 / 2
    if needed > available:
        yield Problem(
            f"Python models need {needed / 2**30:.1f} GiB of shared memory, got "
            f"{available / 2**30:g} GiB"
        )


def _loaded_at_once(context: RepositoryContext) -> list[str]:
    """Return the models that can be loaded together;
    a model of several archives is loaded several times.
    """
    if context.target.mode == "single" or not context.archives:
        return sorted(context.loaded)
    return [
        name for archive in context.archives for name in archive.folders if name in context.models
    ]


def _shared_bytes(model: ModelUnderCheck) -> float:
    if model.backend != "python" or model.config is None:
        return 0
    batch = max(1, model.config.max_batch_size)
    sides = [
        sum(_bytes(tensor) for tensor in side) for side in (model.config.input, model.config.output)
    ]
    region = model.target.shm_default_byte_size or _SHARED_MEMORY_DEFAULT
    return float(instance_count(model) * (region + 1.25 * batch * sum(sides)))


def _bytes(tensor: Any) -> int:
    """Return the bytes of one element of the batch; a variable size counts as 1,
    so this is the minimum.
    """
    row = by_data_type(data_type_name(tensor.data_type))
    item = row.item_size if row is not None and row.item_size else 4
    return int(item * count_elements(max(1, dim) for dim in tensor.dims))


@warning(
    "target-request-size",
    source="AWS documentation: SageMaker hosting FAQs, 25 MB for a real-time endpoint",
    hint="lower max_batch_size, or acknowledge this if clients send smaller batches",
    platforms=SAGEMAKER,
)
def request_size(model: ModelUnderCheck) -> Iterator[Problem]:
    """A request with ``max_batch_size`` elements is within SageMaker's limit.

    The size is that of a binary request; JSON takes several times as much. Triton can still form
    larger batches from several requests.
    """
    if not model.is_served:
        return
    batch = max(1, model.config.max_batch_size)
    size = batch * sum(_bytes(tensor) for tensor in model.config.input)
    limit = INVOCATION_PAYLOAD_BYTES
    if size > limit:
        message = (
            f"a request with a batch of {batch} has {size / _MIB:.0f} MiB, "
            "the limit of SageMaker is "
        )
        message += f"{limit // _MIB} MiB"
        yield Problem(message, ("max_batch_size",))


@rule(
    "target-storage",
    "repository",
    rejects=False,
    source="AWS documentation: SageMaker hosting, volume size",
    hint="use an instance type with more storage, or a larger volume_size",
    needs_files=True,
    platforms=SAGEMAKER,
)
def storage(context: RepositoryContext) -> Iterator[Problem]:
    """The models fit on the disk of the instance.

    SageMaker unpacks the archives there. A multi-model endpoint can unload a model for another one,
    so only its largest model has to fit.
    """
    limit = context.target.storage_gb
    if limit is None:
        return
    sizes = [
        files.size_bytes for name, files in context.packed_files.items() if name in context.loaded
    ]
    largest = max(sizes, default=0) if context.target.mode == "multi-model" else sum(sizes)
    if largest > limit * 10**9:
        yield Problem(f"the models need {largest / 1e9:.1f} GB of storage, got {limit} GB")


@warning(
    "target-gpu-memory",
    "repository",
    source="triton backends, as facts/memory.json names them: which instances share weights",
    hint=(
        "use an instance type whose GPUs have more memory, lower the count of the instance groups, "
        "or load fewer models together"
    ),
    server_hint=(
        "use GPUs with more memory, lower the count of the instance groups, or load fewer models: "
        "--load-model NAME"
    ),
    needs_files=True,
)
def gpu_memory(context: RepositoryContext) -> Iterator[Problem]:
    """The weights of the models that are loaded together fit into the memory of each GPU.

    Weights count with their external data, once for each instance if the backend does not share
    them, beside the context of the server. A multi-model endpoint loads the models of one archive.
    The sum is the least that is needed: memory for requests is not counted, nor are Python models,
    language models, trees and what an accelerator makes of the weights, unless ``[memory]`` of
    triton-models.toml declares them.
    """
    yield from _exceeded(context, is_gpu=True)


@warning(
    "target-memory",
    "repository",
    source="triton backends, as facts/memory.json names them: which instances share weights",
    hint=(
        "use an instance type with more memory, lower the count of the instance groups, "
        "or load fewer models together"
    ),
    server_hint=(
        "give the server more memory, lower the count of the instance groups, or load fewer "
        "models: --load-model NAME"
    ),
    needs_files=True,
)
def memory(context: RepositoryContext) -> Iterator[Problem]:
    """The weights of the models that run on the CPU fit into the memory of the machine.

    They are counted as for ``target-gpu-memory``.
    """
    yield from _exceeded(context, is_gpu=False)


def _exceeded(context: RepositoryContext, *, is_gpu: bool) -> Iterator[Problem]:
    """Report the fullest place, for the models of the archive that need most of it."""
    found = [
        (each.total(place), place, each)
        for each in estimates(context)
        for place in each.exceeded
        if (place != HOST) is is_gpu
    ]
    if found:
        total, place, largest = max(found, key=lambda each: each[0])
        limit = in_units(largest.limits[place])
        parts = "; ".join(map(str, largest.largest(place)))
        yield Problem(
            f"the models need at least {in_units(total)} of {place}, which has {limit}: {parts}"
        )


def estimates(context: RepositoryContext) -> list[MemoryEstimate]:
    """Return what the models take that are loaded together: all, or those of each archive.

    There are none if the number of GPUs is not known, or the files are not complete.
    """
    target = context.target
    if target.gpu_count is None or context.complete_bytes is not None:
        return []
    together: list[list[str]] = [sorted(context.loaded)]
    if target.mode == "multi-model" and context.archives:
        together = [
            [name for name in each.folders if name in context.models] for each in context.archives
        ]
    gpu_bytes = target.gpu_memory_mib and target.gpu_memory_mib * _MIB
    host_bytes = None if target.memory_gib is None else int(target.memory_gib * 2**30)
    return [
        estimate(
            [_loaded(context.models[name]) for name in names],
            target.gpu_count,
            gpu_bytes,
            host_bytes,
        )
        for names in together
    ]


def _loaded(model: ModelUnderCheck) -> LoadedModel:
    return LoadedModel(
        model.name,
        model.backend,
        model.config,
        model.model_files,
        len(model.versions_to_load),
        model.context.declared_memory.get(model.name),
    )
