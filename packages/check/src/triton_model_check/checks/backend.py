"""The backend of a model, and fields that all backends share."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from constructs_triton_core.spelling import closest, is_misspelling, quoted
from triton_model_check.checks.image_content import AGENT_OF_IMAGES, may_have_agents
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.fixes.steps import (
    Remedy,
    put,
    remove,
    rename,
    safe,
    string,
    unsafe,
)
from triton_model_check.model.backends import (
    BACKEND_OF_OTHER_NAME,
    KNOWN_BACKENDS,
    MODEL_FILES,
    backend_of_file,
)
from triton_model_check.model.folder import CONFIG_FILE, CONFIGS
from triton_model_check.model_config.text import read_text_fault

_VALIDATE = "triton core ValidateModelConfig"
_RUNTIMES = {
    name: (f"libtriton_{name}.so",)
    for name in (
        "dali",
        "fil",
        "identity",
        "onnxruntime",
        "openvino",
        "python",
        "tensorflow",
        "tensorrt",
    )
} | {"pytorch": ("libtriton_pytorch.so", "model.py")}
_COMMON_BACKENDS = (
    *KNOWN_BACKENDS,
    "python",
    "openvino",
    "dali",
    "fil",
    "vllm",
    "tensorrtllm",
    "identity",
)


@rule(
    "backend-unknown",
    "model",
    source="triton core AutoCompleteBackendFields",
    hint="add backend to config.pbtxt, with the backend that reads the model's file",
    needs_files=True,
)
def no_backend(model: ModelUnderCheck) -> Iterator[Problem]:
    """The backend is set, or Triton can infer it from a model file such as ``model.onnx``.

    Triton looks for the file in the first version directory. It also accepts a model name of the
    form ``name.backend``.
    """
    if model.folder.config_fault is not None or not model.folder.version_directories:
        return
    if not any((model.backend, model.completed.platform, model.completed.model_file)):
        message = (
            "must specify 'platform' or 'backend', and there is no model file to infer it from"
        )
        yield Problem(message, hint=_misnamed_config(model) or _unknown_file(model))


@warning("backend-config-name", "model", source="triton core GetModelConfigFullPath")
def config_name(model: ModelUnderCheck) -> Iterator[Problem]:
    """The configuration is called ``config.pbtxt``.

    Triton does not read a file of another name, and uses defaults: no batches, or small ones. A
    configuration that ``--model-config-name`` chooses is in the folder ``configs``; the server
    reads ``config.pbtxt`` where there is none.
    """
    if hint := _misnamed_config(model):
        yield Problem("a file of a similar name is not read", hint=hint, path=model.folder.path)
        return
    for name in _unread_configs(model):
        path = f"{CONFIGS}/{name}"
        chosen = name.removesuffix(_CONFIG_SUFFIX)
        otherwise = "remove it" if model.folder.has_config else f'rename it to "{CONFIG_FILE}"'
        hint = (
            f"move it to {path}, which a server with --model-config-name={chosen} reads, "
            f"or {otherwise}"
        )
        yield Problem(
            f'"{name}" is a configuration that is not read',
            hint=otherwise if model.target.is_sagemaker else hint,
            path=model.folder.relative(name),
        )


_CONFIG_SUFFIX = ".pbtxt"
_SOME_FIELDS = ("platform", "backend", "max_batch_size", "input", "output")


def _unread_configs(model: ModelUnderCheck) -> Iterator[str]:
    """Yield the files beside ``config.pbtxt`` that are configurations of another name.

    Beside a ``config.pbtxt``, a name such as ``config_gpu.pbtxt`` is one that a script copies.
    """
    for name, is_folder in sorted(model.folder.entries.items()):
        if is_folder or not name.endswith(_CONFIG_SUFFIX) or name == CONFIG_FILE:
            continue
        is_chosen = name == f"{model.target.model_config_name}{_CONFIG_SUFFIX}"
        is_variant = model.target.is_sagemaker or "config" in name
        if model.folder.has_config and is_variant and not is_chosen:
            continue
        content = model.folder.read(name)
        config = None if content is None else read_text_fault(content)[0]
        if config is not None and any(getattr(config, field) for field in _SOME_FIELDS):
            yield name


def _misnamed_config(model: ModelUnderCheck) -> str | None:
    names = [name for name in model.folder.entries if name[-3:] == "txt" or "pbt" in name]
    named = f"{model.target.model_config_name}{_CONFIG_SUFFIX}"
    if model.folder.has_config or named in names:
        return None
    similar = closest(CONFIG_FILE, names)
    return f'rename "{similar}" to "{CONFIG_FILE}"' if similar is not None else None


def _unknown_file(model: ModelUnderCheck) -> str | None:
    """Return a hint that has the name of the only file, which no backend loads by default."""
    files = sorted(model.folder.list(sorted(model.folder.version_directories)[0]))
    if len(files) != 1:
        return None
    fix = f'add backend to config.pbtxt and set default_model_filename: "{files[0]}"'
    return f"{fix}, or give the file a name that Triton knows: {quoted(MODEL_FILES)}"


@rule("backend-platform", source=_VALIDATE)
def unexpected_platform(model: ModelUnderCheck) -> Iterator[Problem]:
    """A model without ``backend`` has a ``platform`` that implies one.

    A common mistake is ``platform: "python"``: the Python backend needs ``backend: "python"``.
    """
    backend, platform, model_file = model.completed
    if backend or platform == "ensemble" or not (platform or model_file):
        return
    if not platform:
        hint = f'add the backend that reads "{model_file}"'
        message = (
            f"must specify 'platform' or 'backend': default_model_filename \"{model_file}\" implies"
        )
        yield Problem(f"{message} none", ("default_model_filename",), hint)
        return
    guess = BACKEND_OF_OTHER_NAME.get(platform)
    guess = guess or closest(platform, (*_platforms(), "ensemble", *_COMMON_BACKENDS))
    field = "platform" if guess in (*_platforms(), "ensemble") else "backend"
    hint = f'write {field}: "{guess or platform}"'
    yield Problem(
        f'unexpected platform type "{platform}"', ("platform",), hint, fix=_written(model, hint)
    )


def _written(model: ModelUnderCheck, hint: str) -> Remedy | None:
    """Write the field of the hint in place of ``platform``, if it needs no other field."""
    field, _, value = hint.removeprefix("write ").partition(": ")
    known = KNOWN_BACKENDS.get(value.strip('"'))
    if (known and known.platform_required) or (
        value == '"ensemble"' and not model.folder.is_ensemble
    ):
        return None
    kind = safe if model.config.platform in (*BACKEND_OF_OTHER_NAME, *_COMMON_BACKENDS) else unsafe
    return kind(rename(field), put(value))


def _platforms() -> tuple[str, ...]:
    return tuple(
        platform for backend in KNOWN_BACKENDS.values() for platform in backend.default_files
    )


@rule("backend-platform-pair", source=_VALIDATE, hint="remove one of the two; Triton completes it")
def pair(model: ModelUnderCheck) -> Iterator[Problem]:
    """``backend`` and ``platform`` belong together.

    Triton compares them only for TensorFlow, TensorRT, ONNX Runtime and PyTorch. Other backends
    accept any platform.
    """
    known = KNOWN_BACKENDS.get(model.backend)
    platform = model.completed.platform
    if known is None or platform in (*known.default_files, "ensemble"):
        return
    field = ("platform",) if model.config.platform else ("backend",)
    got = f'"{platform}" and "{known.name}"' if platform else f'no platform and "{known.name}"'
    hint = (
        None
        if platform
        else "add platform: " + " or ".join(f'"{name}"' for name in known.default_files)
    )
    yield Problem(f"unexpected 'platform' and 'backend' pair, got {got}", field, hint)


@rule("backend-of-ensemble", when=("backend", "default_model_filename"), source=_VALIDATE)
def backend_of_ensemble(model: ModelUnderCheck) -> Iterator[Problem]:
    """An ensemble has ``platform: "ensemble"`` and no backend.

    The ensemble itself runs no code; the models of its steps do. Triton also fills in a backend
    from a ``default_model_filename`` such as ``model.py``, and then rejects the ensemble.
    """
    config = model.config
    if config.platform != "ensemble":
        return
    message = 'an ensemble must have platform type "ensemble" and empty backend type'
    implied = backend_of_file(config.default_model_filename)
    fix = safe(remove()) if config.HasField("ensemble_scheduling") else unsafe(remove())
    if config.backend:
        yield Problem(f'{message}, got "{config.backend}"', ("backend",), "remove backend", fix=fix)
    elif implied:
        got = f'default_model_filename "{config.default_model_filename}", which implies "{implied}"'
        hint = "remove default_model_filename"
        yield Problem(f"{message}, got {got}", ("default_model_filename",), hint, fix=fix)


@rule(
    "backend-runtime",
    when=("runtime",),
    source="triton core backend_model.cc, ResolveBackendPaths",
    needs_files=True,
)
def runtime_library(model: ModelUnderCheck) -> Iterator[Problem]:
    """``runtime`` is the library of the backend, or a file in the model's folder.

    Triton looks for it in the version directory, the model's folder and the backend's folder. It is
    rarely needed: the default is the library of the backend. The rule skips backends whose files
    are not known.
    """
    runtime = posixpath.normpath(model.config.runtime or ".")
    known = _RUNTIMES.get(model.backend)
    if known is None or not model.config.runtime or posixpath.basename(runtime) in known:
        return
    folders: tuple[tuple[str, ...], ...] = ((), *((version,) for version in model.versions_to_load))
    if not any(
        model.folder.size_of(*folder, *runtime.split("/")) is not None for folder in folders
    ):
        message = f'unable to find backend library "{model.config.runtime}"'
        hint = f'remove runtime, or write runtime: "{known[0]}"'
        yield Problem(message, ("runtime",), hint, fix=unsafe(remove()))


@rule(
    "backend-ensemble-platform",
    when=("platform", "ensemble_scheduling"),
    source="triton core ValidateEnsembleSchedulingConfig",
)
def ensemble_platform(model: ModelUnderCheck) -> Iterator[Problem]:
    """``ensemble_scheduling`` and ``platform: "ensemble"`` are set together.

    Without the platform, Triton reports that it cannot find a backend, which is misleading.
    """
    config = model.config
    scheduled = config.HasField("ensemble_scheduling")
    if scheduled and config.platform != "ensemble":
        message = "ensemble scheduling cannot be set for model whose platform is not ensemble"
        message += f', got "{config.platform}"' if config.platform else ""
        others = [name for name in ("backend", "default_model_filename") if getattr(config, name)]
        steps = [put('"ensemble"', path=("platform",)), *(remove(path=(name,)) for name in others)]
        fix = unsafe(*steps) if config.platform or others else safe(*steps)
        place = ("platform",) if config.platform else ("ensemble_scheduling",)
        yield Problem(message, place, 'write platform: "ensemble"', fix=fix)
    elif not scheduled and config.platform == "ensemble":
        yield Problem(
            "ensemble scheduling must be set for ensemble whose platform is ensemble",
            ("platform",),
            "add ensemble_scheduling with at least one step",
        )


@rule(
    "backend-max-batch-size",
    when=("max_batch_size",),
    source=_VALIDATE,
    hint="write 0 for a model without batching",
)
def max_batch_size(model: ModelUnderCheck) -> Iterator[Problem]:
    """``max_batch_size`` is 0 or more.

    With 0, which is the default, dims are the whole shape of a tensor.
    """
    if model.config.max_batch_size < 0:
        yield Problem(
            f"'max_batch_size' must be non-negative value, got {model.config.max_batch_size}",
            ("max_batch_size",),
            fix=unsafe(put("0")),
        )


@rule("backend-misspelled", when=("backend",), source="triton core TritonBackendManager")
def misspelled(model: ModelUnderCheck) -> Iterator[Problem]:
    """The backend is not a misspelling of a common one, nor the name of a platform.

    An image may contain any backend. The rule therefore reports only a name that differs from a
    common backend by one letter, or by two swapped letters, a platform such as ``tensorrt_plan``,
    ``onnx`` and ``onnxrt``.
    """
    name = model.config.backend
    if "\0" in name:
        yield Problem(
            f"unable to find backend library for backend {name!r}", ("backend",), "remove the \\0"
        )
    if not name or name in _COMMON_BACKENDS or len(name) < 4:
        return
    message = f'unable to find backend library for backend "{name}"'
    guess = closest(name, _COMMON_BACKENDS)
    if name in BACKEND_OF_OTHER_NAME:
        field, _, value = _field_of_other_name(name).partition(": ")
        is_free = field == "backend" or not model.config.platform
        fix = unsafe(rename(field), put(value)) if is_free else None
        yield Problem(message, ("backend",), f"did you mean {field}: {value}?", fix=fix)
    elif guess is not None and is_misspelling(name, guess):
        yield Problem(
            message, ("backend",), f'did you mean "{guess}"?', fix=unsafe(put(string(guess)))
        )


def _field_of_other_name(name: str) -> str:
    """The backend of a platform, or the platform where the backend alone implies another one."""
    backend = BACKEND_OF_OTHER_NAME[name]
    known = KNOWN_BACKENDS[backend]
    is_default = name not in known.default_files or name == next(iter(known.default_files))
    return (
        f'backend: "{backend}"'
        if is_default and not known.platform_required
        else f'platform: "{name}"'
    )


@rule(
    "backend-repository-agent",
    when=("model_repository_agents",),
    source="triton core TritonRepoAgentManager",
    hint="use an image that contains the agent, or take it out of model_repository_agents",
)
def repository_agent(model: ModelUnderCheck) -> Iterator[Problem]:
    """A repository agent is one that the image contains.

    NVIDIA's images contain only ``checksum``. Whether another image has an agent is not known, so
    it is listed as not checked there, and on a server.
    """
    for index, agent in enumerate(model.config.model_repository_agents.agents):
        if agent.name == AGENT_OF_IMAGES or may_have_agents(model.target):
            continue
        place = ("model_repository_agents", "agents", index)
        yield Problem(f'unable to find repo agent "{agent.name}"', place)


@rule("backend-model-metrics", when=("model_metrics",), source="triton core ValidateModelMetrics")
def model_metrics(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each ``metric_control`` has a metric family and the buckets of its histogram.

    Triton rejects an incomplete one.
    """
    for index, control in enumerate(model.config.model_metrics.metric_control):
        place = ("model_metrics", "metric_control", index)
        if not control.metric_identifier.family:
            message = "metric identifier must specify non-empty 'family'"
            yield Problem(message, place, 'add metric_identifier { family: "..." }')
        if not control.histogram_options.buckets:
            message = "histogram options must specify non-empty 'buckets'"
            yield Problem(message, place, "add histogram_options { buckets: [ ... ] }")
