"""Whether the image, the GPUs, the disk and the request size of the target suit the models."""

from __future__ import annotations

from collections.abc import Iterator

from constructs_triton_core.facts.limits import INVOCATION_PAYLOAD_BYTES
from constructs_triton_core.facts.versions import is_at_least
from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.checks.backend import misspelled
from triton_model_check.checks.image_content import (
    has_own_backend,
    is_reported_as_absent,
    may_have_others,
)
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
from triton_model_check.memory.tensor_sizes import tensor_bytes
from triton_model_check.model_config.release_fields import fields_after
from triton_model_check.model_config.target import SAGEMAKER

_MIB = 2**20
_PROTO = "triton common protobuf/model_config.proto by release branch"


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
    size = batch * sum(tensor_bytes(tensor) for tensor in model.config.input)
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
