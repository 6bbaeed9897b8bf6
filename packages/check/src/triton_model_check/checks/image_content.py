"""What the image of the target has for a model, and what of it is not known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from triton_model_check.facts.images import image_of_backend, image_version
from triton_model_check.facts.releases import FIELDS, unknown_facts

if TYPE_CHECKING:
    from triton_model_check.checks.model_under_check import ModelUnderCheck
    from triton_model_check.model_config.target import Target

__all__ = [
    "AGENT_OF_IMAGES",
    "has_own_backend",
    "is_reported_as_absent",
    "may_have_agents",
    "may_have_others",
    "not_known_of_image",
]

AGENT_OF_IMAGES = "checksum"
"""The only repository agent of NVIDIA's images."""


def not_known_of_image(model: ModelUnderCheck) -> Iterator[str]:
    """Yield what the checks skip for the model, because the content of the image is not known.

    The reader of an ONNX file says the same of ONNX Runtime.
    """
    version = model.target.image_version
    yield from _agents_not_known(model)
    if model.target.completes_configs is None and not _is_complete(model):
        yield (
            f"{model.folder.path}: not checked whether image {version} completes configurations: "
            "its start script was not published"
        )
    unknown = () if version is None else unknown_facts(version)
    if version is None:
        return
    path = model.folder.path
    if model.target.image_backends is None and _depends_on_backends(model, version):
        image = model.target.image
        yield f'{path}: not checked whether image {image} has the backend "{model.backend}"'
    if "Python" in unknown and model.backend == "python" and model.image_python is None:
        yield f"{path}: not checked for the Python of image {version}, which is not known"
    if FIELDS in unknown and model.config is not None:
        yield f"{path}: not checked whether image {version} knows all fields of config.pbtxt"


def may_have_agents(target: Target) -> bool:
    """Whether the server may have repository agents besides that of NVIDIA's images."""
    return not (target.is_sagemaker and target.is_prebuilt_image)


def _agents_not_known(model: ModelUnderCheck) -> Iterator[str]:
    """Yield the repository agents of the model that only an image of the user can have.

    They may change the model's files, for example decrypt them.
    """
    if model.config is None or not may_have_agents(model.target):
        return
    for agent in model.config.model_repository_agents.agents:
        if agent.name != AGENT_OF_IMAGES:
            path = model.folder.config_path
            yield f'{path}: not checked whether the server has the repository agent "{agent.name}"'


def _is_complete(model: ModelUnderCheck) -> bool:
    """Whether the model loads without completion, or is rejected for another reason."""
    if model.folder.is_ensemble or model.folder.config_fault is not None:
        return True
    return not model.is_auto_completed and not model.completes_tensors


def _depends_on_backends(model: ModelUnderCheck, version: str) -> bool:
    """Whether the server has the backend only if the image has it, and no rule reports it."""
    if not model.backend or model.folder.is_ensemble or model.backend == "ensemble":
        return False
    if may_have_others(model) or is_reported_as_absent(model, version):
        return False
    return model.config is None or not has_own_backend(model)


def may_have_others(model: ModelUnderCheck) -> bool:
    """Whether the server may have the backend of the model, whatever is known of the image."""
    target = model.target
    if not target.is_prebuilt_image or model.backend in target.backends:
        return True
    return target.image_flavor is not None and model.backend in (target.image_backends or ())


def is_reported_as_absent(model: ModelUnderCheck, version: str) -> bool:
    """Whether another rule reports that images of this release do not have the backend."""
    is_removed = model.backend in image_version(version).removed_backends
    if model.target.image_flavor is not None:
        return is_removed
    return is_removed or image_of_backend(model.backend, version) is not None


def has_own_backend(model: ModelUnderCheck) -> bool:
    """Whether the model's folder contains the library of its backend."""
    folders = (model.folder.entries, *map(model.folder.list, model.versions_to_load))
    return any(
        name == "model.py" or name.startswith("libtriton_") or name == model.config.runtime
        for names in folders
        for name in names
    )
