"""A TensorRT-LLM repository: its placeholders, its engine folder, and the GPUs that the engine
needs.

Source: triton tensorrtllm_backend docs/model_config.md, and the configurations of NVIDIA's
repository ``inflight_batcher_llm``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from constructs_triton_core.bounded_json import parse_bounded_json
from triton_model_check.checks.engine_arguments import MODEL_ROOT
from triton_model_check.checks.model_under_check import (
    TENSORRT_LLM_PLACEHOLDER,
    ModelUnderCheck,
)
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.fixes.steps import put, safe

_DOCS = "triton tensorrtllm_backend docs/model_config.md"
# A parameter that keeps its placeholder gets a default. These have none: the first of the model
# that runs the engine, the second of the models in Python around it.
_ENGINE_PARAMETERS = ("engine_dir", "gpt_model_path")
_TOKENIZER_PARAMETERS = ("tokenizer_dir",)
# ``multimodal_encoders`` opens config.json in this folder. ``preprocessing`` has the parameter too,
# and a tokenizer, and does without the folder.
_ENCODER_PARAMETERS = ("multimodal_model_path",)
_PLACEHOLDER = re.compile(r"\$\{\w+\}")


@rule("tensorrt-llm-placeholder", "tensorrtllm-template", source=_DOCS)
def placeholder(model: ModelUnderCheck) -> Iterator[Problem]:
    """The backend and the folders of engine, tokenizer and encoder of NVIDIA's templates are set.

    Other parameters that keep a placeholder such as ``${max_beam_width}`` get their default. The
    engine folder of ``preprocessing`` is read only for images, and the tokenizer folder of
    ``tensorrt_llm`` only for guided decoding: NVIDIA's guides leave both as they are. A placeholder
    outside quotes is a syntax error, ``text-template``.
    """
    if model.config.backend == TENSORRT_LLM_PLACEHOLDER:
        message = "backend contains an unfilled placeholder"
        hint = 'write backend: "tensorrtllm"'
        yield Problem(message, ("backend",), hint, fix=safe(put('"tensorrtllm"')))
    for name in _parameters_without_default(model):
        value = model.parameter(name)
        if _PLACEHOLDER.fullmatch(value):
            hint = f'write the folder on the server, for example "{MODEL_ROOT}/{model.name}/1"'
            yield Problem(
                f"{name} contains an unfilled placeholder, got {value}", ("parameters", name), hint
            )


def _parameters_without_default(model: ModelUnderCheck) -> tuple[str, ...]:
    """Return the parameters of NVIDIA's template of the model that have to be filled in."""
    if model.config.backend != "python" or model.parameter("gpt_model_type"):
        return _ENGINE_PARAMETERS
    if "tokenizer_dir" in model.config_parameters:
        return _TOKENIZER_PARAMETERS
    return _ENCODER_PARAMETERS


# --- the engine -----------------------------------------------------------------------------------


class _Engine(NamedTuple):
    """An engine folder of the repository, as its ``config.json`` describes it."""

    path: str
    world_size: int
    files: frozenset[str]


@rule(
    "tensorrt-llm-engine",
    "tensorrtllm",
    needs_files=True,
    source="NVIDIA TensorRT-LLM: the engine folder",
)
def engine_files(model: ModelUnderCheck) -> Iterator[Problem]:
    """The engine folder has a ``config.json`` and a file ``rank<N>.engine`` for each process."""
    parts = _engine_parts(model)
    if parts is None:
        return
    engine = _engine(model, parts)
    if engine is None:
        if not model.folder.exists(*parts) or not model.folder.exists(*parts, "config.json"):
            message = f"the repository has no engine in {model.folder.relative(*parts)}"
            hint = "copy config.json and rank*.engine of trtllm-build there"
            yield Problem(message, ("parameters", _engine_parameter(model)), hint)
        elif model.folder.read(*parts, "config.json") == b"":
            path = model.folder.relative(*parts, "config.json")
            yield Problem(
                "config.json of the engine is empty", hint="copy that of trtllm-build", path=path
            )
        return
    missing = [f"rank{rank}.engine" for rank in range(min(engine.world_size, 1024))]
    absent = [name for name in missing if name not in engine.files]
    if absent:
        message = (
            f"the engine was built for {engine.world_size} processes, and {absent[0]} is missing"
        )
        yield Problem(message, hint="copy all files of trtllm-build", path=engine.path)


@rule(
    "tensorrt-llm-gpus",
    "tensorrtllm",
    needs_files=True,
    source="NVIDIA TensorRT-LLM: mapping of the engine",
)
def engine_gpus(model: ModelUnderCheck) -> Iterator[Problem]:
    """The instance has a GPU for each process of the engine."""
    engine, available = _engine_of(model), model.target.gpu_count
    if engine is not None and available is not None and engine.world_size > available:
        message = f"the engine needs {engine.world_size} GPUs, and the instance has {available}"
        more = f"use {model.target.hardware} with more GPUs"
        hint = f"{more}, or build the engine with a smaller tp_size or pp_size"
        yield Problem(message, hint=hint, path=engine.path)


@warning(
    "tensorrt-llm-processes",
    "tensorrtllm",
    needs_files=True,
    source="triton tensorrtllm_backend docs/llama_multi_instance.md; not tried on SageMaker",
    hint="set the environment variable TRTLLM_ORCHESTRATOR to 1, with additional_variables",
)
def engine_processes(model: ModelUnderCheck) -> Iterator[Problem]:
    """An engine of several processes runs in orchestrator mode.

    By default it needs one server process for each GPU, and SageMaker's start script starts one.
    Nothing published says whether orchestrator mode works on SageMaker.
    """
    engine = _engine_of(model)
    if engine is not None and engine.world_size > 1 and model.target.has_orchestrator is False:
        message = (
            f"the engine needs {engine.world_size} processes, "
            "and the image starts one server process"
        )
        yield Problem(message, path=engine.path)


def _engine_of(model: ModelUnderCheck) -> _Engine | None:
    parts = _engine_parts(model)
    return None if parts is None else _engine(model, parts)


def _engine_parameter(model: ModelUnderCheck) -> str:
    return "gpt_model_path" if model.parameter("gpt_model_path") else "engine_dir"


def _engine_parts(model: ModelUnderCheck) -> tuple[str, ...] | None:
    """Return the engine folder below the model's folder, or ``None`` if it is elsewhere."""
    place = model.parameter(_engine_parameter(model))
    inside = f"{MODEL_ROOT}/{model.name}/"
    below = place.removeprefix(inside)
    parts = tuple(part for part in below.split("/") if part not in ("", "."))
    return None if below == place or ".." in parts or model.target.mode != "single" else parts


def _engine(model: ModelUnderCheck, parts: tuple[str, ...]) -> _Engine | None:
    """Return the engine in a folder; ``None`` if its ``config.json`` is not that of one."""
    content = model.folder.read(*parts, "config.json")
    try:
        described = None if content is None else parse_bounded_json(content)
    except ValueError:
        return None
    size = _member(_member(_member(described, "pretrained_config"), "mapping"), "world_size")
    if not isinstance(size, int) or size < 1:
        return None
    path = model.folder.relative(*parts, "config.json")
    return _Engine(path, size, frozenset(model.folder.list(*parts)))


def _member(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None
