"""Which inference type a container uses, and what to say before the first request if it cannot
stream.

Source: triton server docker/sagemaker/serve and src/sagemaker_server.cc:
``SAGEMAKER_TRITON_INFERENCE_TYPE`` exists since 25.04, and applies to containers of one model only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from constructs_triton_tools.local.sources.specs import ContainerSpec
from triton_model_check.facts.images import image_version
from triton_model_check.model_repository import ModelRepository

INFERENCE_TYPE = "SAGEMAKER_TRITON_INFERENCE_TYPE"
DEFAULT_MODEL = "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
_IMAGE = re.compile(r"(?:^|/)(?:sagemaker-)?tritonserver:(\d{2}\.\d{2})(?:-|$)")


def used_inference_type(container: ContainerSpec, image: str) -> str:
    """Return the inference type with which a container of this image answers:
    ``infer`` if it ignores it.
    """
    ignores = container.is_multi_model or not _reads_type(image)
    return "infer" if ignores else container.environment.get(INFERENCE_TYPE) or "infer"


def report_inference_type(
    container: ContainerSpec, image: str, models: Path, report: Callable[[str], None]
) -> None:
    """Report why a container cannot answer as the template asks;
    ``models`` is the unpacked repository.
    """
    wanted = container.environment.get(INFERENCE_TYPE) or "infer"
    if container.is_multi_model:
        if wanted != "infer":
            report(
                f"{INFERENCE_TYPE}={wanted} has no effect on a multi-model endpoint, on your "
                "machine and in AWS; serve a model that streams on an endpoint of its own"
            )
        return
    if wanted != "infer" and not _reads_type(image):
        report(
            f"the image {image} is older than 25.04 and ignores {INFERENCE_TYPE}={wanted}, so it "
            "answers as with infer; set image_version to 25.04 or newer"
        )
    default_model = container.environment.get(DEFAULT_MODEL, "")
    if used_inference_type(container, image) == "infer" and is_decoupled(models, default_model):
        report(
            "the model is decoupled, so every request gets status 501, on your machine and in AWS; "
            "set inference_type to generate_stream, with image_version 25.04 or newer"
        )


def is_decoupled(repository: Path, default_model: str) -> bool:
    """Whether the default model, or a step of it, is decoupled.

    A model that calls a decoupled one is not: it collects the responses itself (python_backend,
    README, "Business Logic Scripting"). An empty name means the only model.
    """
    found = ModelRepository.from_directory(repository)
    return _has_decoupled_step(found, default_model or next(iter(found.models), ""), set())


def _has_decoupled_step(repository: ModelRepository, name: str, seen: set[str]) -> bool:
    """Whether a model or a step of it, at any depth, is decoupled.

    Models and steps that do not exist are not: the server reports them.
    """
    if name in seen or name not in repository.models:
        return False
    seen.add(name)
    config = repository.models[name].config
    if config is None:
        return False
    if config.model_transaction_policy.decoupled:
        return True
    steps = [step.model_name for step in config.ensemble_scheduling.step]
    return any(_has_decoupled_step(repository, step, seen) for step in steps)


def _reads_type(image: str) -> bool:
    """Whether the image reads the variable; so do images of unknown version."""
    known = _IMAGE.search(image)
    return known is None or image_version(known[1]).has_inference_type
