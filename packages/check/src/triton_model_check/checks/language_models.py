"""What the engines of language models take of the GPUs: vLLM's and TensorRT-LLM's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from constructs_triton_core.facts.versions import is_at_least
from constructs_triton_core.spelling import quoted
from triton_model_check.checks.engine_arguments import EngineArguments, engine_arguments_of
from triton_model_check.checks.instances import groups
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.facts.published import load
from triton_model_check.memory.engine import EngineMemory, GpuUse, folder_of
from triton_model_check.memory.instances import GPU, resolved_kind
from triton_model_check.memory.tensorrt_llm_engine import TensorRtLlmEngine, engine_memory
from triton_model_check.memory.vllm_engine import VllmEngine
from triton_model_check.model_files.transformer import read_transformer

_MIB = 2**20
_ENGINE_FOLDERS = ("gpt_model_path", "engine_dir")
_ENCODER_FOLDERS = ("encoder_model_path", "encoder_engine_dir")
_NO_CONFIG = "it has no config.pbtxt that can be read"


def memory_of_engines(model: ModelUnderCheck) -> EngineMemory | None:
    """Return what the engines of a language model take; ``None`` for models of other backends."""
    if model.backend == "vllm":
        return _vllm(model)
    if model.backend == "tensorrtllm":
        return _tensorrt_llm(model)
    return None


def vllm_engine(arguments: EngineArguments) -> VllmEngine:
    """Return the engine that a ``model.json`` describes, with the weights of its folder."""
    model = arguments.model
    folder = folder_of(arguments.source, model.name, model.folder.directory)
    if folder is None:
        folder = _downloaded(arguments)
    mebibytes = model.target.gpu_memory_mib
    return VllmEngine(
        arguments.values,
        None if folder is None else read_transformer(folder),
        None if mebibytes is None else mebibytes * _MIB,
        arguments.tensor_parallel,
        arguments.pipeline_parallel,
    )


def _downloaded(arguments: EngineArguments) -> Path | None:
    """Return the folder of a model on a hub, if the folder of the model has a cache of it.

    ``download_dir`` is a cache of Hugging Face, with a folder for each model and each revision.
    Source: huggingface_hub documentation, "Understand caching".
    """
    place = arguments.values.get("download_dir")
    model = arguments.model
    if not isinstance(place, str):
        return None
    cache = folder_of(place, model.name, model.folder.directory)
    if cache is None:
        return None
    snapshots = cache / f"models--{arguments.source.replace('/', '--')}" / "snapshots"
    try:
        revisions = [each for each in snapshots.iterdir() if each.is_dir()]
    except (OSError, ValueError):
        return None
    return revisions[0] if len(revisions) == 1 else None


# --- vLLM -----------------------------------------------------------------------------------------


def _vllm(model: ModelUnderCheck) -> EngineMemory:
    found = [_uses_of_vllm(arguments) for arguments in engine_arguments_of(model)]
    if not found:
        return EngineMemory(not_counted=("its model.json cannot be read",))
    return EngineMemory.joined(found)


def _uses_of_vllm(arguments: EngineArguments) -> EngineMemory:
    """Return the GPU memory that vLLM takes for a model."""
    engine = vllm_engine(arguments)
    use = engine.use()
    if use is None:
        return EngineMemory(not_counted=(_unknown_weights(arguments, engine),))

    what, size = use
    placed = _gpus_of_vllm(arguments.model, engine.gpus)
    if not placed:
        return EngineMemory(not_counted=("vLLM without a GPU",))
    uses = tuple(GpuUse(gpu, what, size * count, count) for gpu, count in placed.items())
    if engine.weights is not None:
        return EngineMemory(uses)
    note = f"whether it holds its weights: {_unknown_weights(arguments, engine)}"
    return EngineMemory(uses, (note,))


def _unknown_weights(arguments: EngineArguments, engine: VllmEngine) -> str:
    if engine.transformer is not None:
        return "vLLM quantizes its weights, or reads another format than safetensors"
    return f"the weights of {quoted([arguments.source])} are not safetensors in the repository"


def _gpus_of_vllm(model: ModelUnderCheck, gpus: int) -> Counter[int]:
    """Return how many engines run on each GPU; empty without a GPU.

    An engine of several GPUs, or of ``KIND_MODEL``, begins at GPU 0. Releases from 25.04 run an
    instance of ``KIND_GPU`` on its own GPU; before, each one runs on GPU 0.
    """
    available = model.target.gpu_count or 0
    first = range(min(gpus, available))
    found: Counter[int] = Counter()
    listed = [] if model.config is None else [group for _, group in groups(model)]
    for group in listed:
        count = max(1, group.count)
        if gpus > 1 or resolved_kind(group, available) != GPU:
            found.update(dict.fromkeys(first, count))
            continue
        for gpu in group.gpus or range(available):
            if gpu in range(available):
                found[gpu if runs_on_its_gpu(model) else 0] += count
    if not listed and gpus > 1:
        found.update(first)
    elif not listed:
        found.update(gpu if runs_on_its_gpu(model) else 0 for gpu in range(available))
    return found


def runs_on_its_gpu(model: ModelUnderCheck) -> bool:
    """Return whether an instance of ``KIND_GPU`` runs on its own GPU, as new releases do."""
    version = model.target.image_version
    since = load("memory")["vllm"]["kind_gpu_chooses_gpu"]["since"]
    return version is None or is_at_least(version, since)


# --- TensorRT-LLM ---------------------------------------------------------------------------------


def _tensorrt_llm(model: ModelUnderCheck) -> EngineMemory:
    """Return the GPU memory that the engines of TensorRT-LLM take for a model."""
    if model.config is None:
        return EngineMemory(not_counted=(_NO_CONFIG,))
    places = [place for place in _places(model, _ENGINE_FOLDERS, _ENCODER_FOLDERS) if place]
    if not places:
        return EngineMemory(not_counted=("its engine folder is not named",))

    engines, elsewhere = [], []
    for place in places:
        folder = folder_of(place, model.name, model.folder.directory)
        engine = None if folder is None else TensorRtLlmEngine.read(folder)
        if engine is None:
            elsewhere.append(f"the engine of {quoted([place])} is not in the repository")
        else:
            engines.append(engine)

    parameters = {name: model.parameter(name) for name in model.config_parameters}
    instances = sum(max(1, group.count) for _, group in groups(model)) or 1
    unknown = EngineMemory(not_counted=tuple(elsewhere))
    if not engines:
        return unknown
    found = engine_memory(engines, parameters, instances, model.target.gpu_count or 0)
    return EngineMemory.joined([found, unknown])


def _places(model: ModelUnderCheck, *alternatives: tuple[str, ...]) -> Iterator[str]:
    """Yield the first parameter of each that is set and is no placeholder."""
    for names in alternatives:
        values = (model.parameter(name) for name in names)
        yield next((value for value in values if value and not value.startswith("${")), "")
