"""The engine arguments of a vLLM model. Source: triton vllm_backend r26.01, src/model.py."""

from __future__ import annotations

from collections.abc import Iterator

from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.checks.engine_arguments import (
    ENGINE_FILE,
    MODEL_ROOT,
    EngineArguments,
    engine_arguments_of,
    read_arguments,
)
from triton_model_check.checks.instances import groups
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.facts.backend_releases import (
    engine_arguments,
    knows_engine_arguments,
    lacks_former_engine_arguments,
)
from triton_model_check.fixes.steps import string_meant
from triton_model_check.memory.instances import resolved_kind

_SOURCE = "triton vllm_backend, src/model.py"
_ENGINE = "vllm 0.19.0 and 0.33.0, vllm/engine/arg_utils.py"
_LORA_FILE = "multi_lora.json"
_ON_A_HUB = "Qwen/Qwen3-0.6B"
_GPU = 1


@rule("vllm-engine-file", "vllm", needs_files=True, source=_SOURCE)
def engine_file(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each version has a ``model.json`` with the arguments of the engine, a JSON object."""
    for version in model.versions_to_load:
        path = model.folder.relative(version, ENGINE_FILE)
        if not model.folder.exists(version, ENGINE_FILE):
            place = (
                f"{MODEL_ROOT}/{model.name}/{version}/weights"
                if model.target.is_sagemaker
                else _ON_A_HUB
            )
            hint = f'write {path}, for example {{"model": "{place}"}}'
            if ENGINE_FILE in model.folder.entries:
                hint = f"move {ENGINE_FILE} into {version}/"
            yield Problem(
                f"{ENGINE_FILE} is missing", hint=hint, path=model.folder.relative(version)
            )
        elif not isinstance(content := read_arguments(model, version), dict):
            reason = f": {content}" if isinstance(content, ValueError) else ""
            hint = (
                "correct the JSON at this place"
                if reason
                else "write the engine arguments as {...}"
            )
            yield Problem(f"{ENGINE_FILE} is not a JSON object{reason}", hint=hint, path=path)


@warning("vllm-engine-argument", "vllm", needs_files=True, source=_ENGINE)
def engine_argument(model: ModelUnderCheck) -> Iterator[Problem]:
    """vLLM knows each key of ``model.json``.

    An unknown key is a ``TypeError``, and the server ends. The names change with each release; the
    check knows those of two, and reports a name that is in neither. For images that are older or
    newer than these, such a name is listed as not checked. The check suggests none for a name that
    was removed, because ``enable_log_requests`` is the opposite of the former
    ``disable_log_requests``.
    """
    if not knows_engine_arguments(model.target.image_version):
        return  # arguments_not_checked lists them
    for arguments in engine_arguments_of(model):
        for key in _unknown_keys(arguments):
            otherwise = "remove it, or ignore this if the vLLM of your image has it"
            is_former = key in engine_arguments("former_engine_arguments")
            free = [name for name in engine_arguments() if name not in arguments.values]
            hint = otherwise if is_former else did_you_mean(key, free, otherwise)
            message = (
                f'vLLM {"no longer has the" if is_former else "has no"} engine argument "{key}"'
            )
            yield Problem(message, hint=hint, path=arguments.path, fix=string_meant(key, hint))


def _unknown_keys(arguments: EngineArguments) -> list[str]:
    """Return the keys of ``model.json`` that the vLLM of the image is not known to have."""
    known = engine_arguments()
    if not lacks_former_engine_arguments(arguments.model.target.image_version):
        known |= engine_arguments("former_engine_arguments")
    return sorted(arguments.values.keys() - known)


def arguments_not_checked(model: ModelUnderCheck) -> tuple[str, ...]:
    """Return a line for each argument that the vLLM of another release may have."""
    version = model.target.image_version
    if knows_engine_arguments(version) or not model.target.local_files:
        return ()
    reason = f"not checked whether the vLLM of image {version} has the argument"
    return tuple(
        f'{arguments.path}: {reason} "{key}"'
        for arguments in engine_arguments_of(model)
        for key in _unknown_keys(arguments)
    )


@rule("vllm-instance-kind", "vllm", needs_files=True, source=_SOURCE)
def instance_kind(model: ModelUnderCheck) -> Iterator[Problem]:
    """A model on several GPUs has an instance group of ``KIND_MODEL``.

    Otherwise Triton assigns one GPU to the instance, and the backend refuses to use others.
    """
    spread = next((each for each in engine_arguments_of(model) if each.gpus > 1), None)
    if spread is None or model.config is None:
        return
    count = model.target.gpu_count or 1
    place = next(
        (place for place, group in groups(model) if resolved_kind(group, count) == _GPU), None
    )
    if place is None and model.config.instance_group:
        return
    message = f"the engine uses {spread.gpus} GPUs, and an instance of KIND_GPU has one"
    yield Problem(message, place or (), "write instance_group [ { count: 1 kind: KIND_MODEL } ]")


@warning(
    "vllm-instance-gpu",
    "vllm",
    needs_files=True,
    source="triton vllm_backend pull 85: src/model.py by release branch, and what it measured",
    hint="use image version 25.04 or newer, or start a server for each GPU",
    before="25.04",
)
def instance_gpu(model: ModelUnderCheck) -> Iterator[Problem]:
    """The image version runs an instance of ``KIND_GPU`` on its own GPU.

    Before 25.04 all instances run on GPU 0, whatever ``gpus`` says. Several of them run out of
    memory there, and the other GPUs are not used.
    """
    available = model.target.gpu_count
    if available is None or available < 2 or model.config is None:
        return
    if any(each.gpus > 1 for each in engine_arguments_of(model)):
        return  # vllm-instance-kind reports it
    for place, group in groups(model):
        if resolved_kind(group, available) == _GPU and list(group.gpus) != [0]:
            where = f"GPU {group.gpus[0]}" if len(group.gpus) == 1 else "several GPUs"
            version = model.target.image_version
            yield Problem(f"image {version} runs instances for {where} on GPU 0", place)


@rule("vllm-parallel-size", "vllm", needs_files=True, source="vllm 0.19.0, vllm/config/parallel.py")
def parallel_size(model: ModelUnderCheck) -> Iterator[Problem]:
    """The instance has the GPUs that tensor and pipeline parallelism need."""
    available = model.target.gpu_count
    for arguments in engine_arguments_of(model) if available is not None else ():
        if arguments.gpus > max(1, available or 0):
            message = f"world size ({arguments.gpus}) is larger than the number of available GPUs "
            message += f"({available}): tensor_parallel_size {arguments.tensor_parallel} times "
            message += f"pipeline_parallel_size {arguments.pipeline_parallel}"
            hint = f"use {model.target.hardware} with more GPUs, or lower tensor_parallel_size"
            yield Problem(message, hint=hint, path=arguments.path)


@rule(
    "vllm-weights",
    "vllm",
    needs_files=True,
    source="vllm: EngineArgs.model is a folder or the id of a hub",
)
def weights(model: ModelUnderCheck) -> Iterator[Problem]:
    """``model`` is a folder below ``/opt/ml/model`` that is in the repository, or the id of a model
    on a hub.

    A relative path is relative to the process, not to ``model.json``. With network isolation
    nothing can be downloaded. A model behind a licence also needs the environment variable
    ``HF_TOKEN``.
    """
    for arguments in engine_arguments_of(model):
        fault = _fault_of_weights(arguments)
        if fault is not None:
            yield Problem(fault[0], hint=fault[1], path=arguments.path)


def _fault_of_weights(arguments: EngineArguments) -> tuple[str, str] | None:
    """Return message and hint if vLLM does not find the weights of a model."""
    model, source = arguments.model, arguments.source
    beside = f"{MODEL_ROOT}/{model.name}/{arguments.version}"
    if not source:
        where = f"{beside}/weights" if model.target.is_sagemaker else _ON_A_HUB
        return 'no "model"', f'add "model", for example "{where}"'
    local = arguments.local_folder
    if local is not None and not local.is_dir():
        return f'the repository has no folder for "{source}"', f"copy the weights below {beside}"
    if source[0] == "/":
        return None
    parts = [part for part in source.split("/") if part != "."]
    if ".." not in parts and model.folder.exists(arguments.version, *parts):
        return (
            f'"{source}" is relative to the server\'s process',
            f'write "{"/".join((beside, *parts))}"',
        )
    if model.target.has_network_isolation:
        hint = "copy the weights into the repository, or remove enable_network_isolation"
        return f'"{source}" cannot be downloaded with network isolation', hint
    return None


@rule("vllm-lora", "vllm", needs_files=True, source=_SOURCE)
def lora(model: ModelUnderCheck) -> Iterator[Problem]:
    """With ``enable_lora`` a version has a ``multi_lora.json`` with the folder of each adapter."""
    for arguments in engine_arguments_of(model):
        if str(arguments.values.get("enable_lora", "")).lower() != "true":
            continue
        if not model.folder.exists(arguments.version, _LORA_FILE):
            adapter = f"{MODEL_ROOT}/{model.name}/{arguments.version}/adapter"
            hint = f'write {{"name": "{adapter}"}}, or remove enable_lora'
            yield Problem(
                f"enable_lora is true, and {_LORA_FILE} is missing", hint=hint, path=arguments.path
            )


@warning("vllm-lora-rank", "vllm", needs_files=True, source="vllm 0.33.0, MaxLoRARanks")
def lora_rank(model: ModelUnderCheck) -> Iterator[Problem]:
    """``max_lora_rank`` is one of the values that vLLM accepts."""
    ranks = (1, 8, 16, 32, 64, 128, 256, 320, 512)
    for arguments in engine_arguments_of(model):
        rank = arguments.values.get("max_lora_rank", 16)
        if rank not in ranks:
            hint = f"use one of {quoted(map(str, ranks))}"
            message = "max_lora_rank must be one of vLLM's ranks"
            yield Problem(f"{message}, got {str(rank)[:20]}", hint=hint, path=arguments.path)
