"""The configuration of a model as Triton completes it when it loads the model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from triton_model_check.checks.model_under_check import ModelUnderCheck, RepositoryContext
from triton_model_check.model.completion import complete_core
from triton_model_check.model.folder import ModelFolder
from triton_model_check.model_config.schema import new_model_config
from triton_model_check.model_config.target import Target

__all__ = ["complete"]


@dataclass(frozen=True)
class LoadedConfig:
    """A completed configuration.

    ``config`` is the completed message, ``written`` what ``config.pbtxt`` contains. ``notes`` say
    which parts may still be completed otherwise.
    """

    config: Any
    written: Any
    notes: tuple[str, ...] = ()

    @cached_property
    def filled_in(self) -> frozenset[str]:
        """The top-level fields that differ from the file."""
        names = {
            each.name for message in (self.config, self.written) for each, _ in message.ListFields()
        }
        return frozenset(
            name for name in names if getattr(self.config, name) != getattr(self.written, name)
        )


def complete(folder: ModelFolder, target: Target | None = None) -> LoadedConfig:
    """Complete a model's configuration, from its model file if that is an ONNX model.

    Without ``target.gpu_count``, instance groups are left as they are. A ``config.pbtxt`` that
    cannot be parsed counts as absent.
    """
    model = _under_check(folder, target or Target())
    written = new_model_config()
    config = new_model_config()
    if folder.config is not None:
        written.CopyFrom(folder.config)
    config.CopyFrom(model.final_config if model.final_config is not None else written)
    config.name = config.name or folder.name
    if not folder.is_ensemble:
        complete_core(config, model.completed, model.target.gpu_count)
    return LoadedConfig(config, written, _notes(model))


def _under_check(folder: ModelFolder, target: Target) -> ModelUnderCheck:
    """Return one model folder as the model of a repository of its own."""
    context = RepositoryContext(
        folders={folder.name: folder},
        directories={folder.name: False},
        root=None,
        target=target,
        loaded=frozenset({folder.name}),
        served=(folder.name,),
    )
    return context.models[folder.name]


def _notes(model: ModelUnderCheck) -> tuple[str, ...]:
    """Return why the completed configuration may differ from that of the server."""
    faults = [
        f"{model.place_of(file.path.parent / (fault.file or file.path.name))}: {fault.message}"
        for file in model.model_files
        for fault in file.faults
    ]
    if faults:
        return tuple(faults)
    if model.backend == "python" and model.completes_tensors:
        return (
            (
                "auto_complete_config of the model may set tensors, "
                "max_batch_size and dynamic_batching"
            ),
        )
    if model.backend == "onnxruntime":
        return model.not_checked
    if model.completes_tensors:
        backend = f"{model.backend} backend" if model.backend else "backend"
        return (f"the {backend} may complete tensors and max_batch_size from the model file",)
    return ()
