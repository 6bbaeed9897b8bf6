"""What a rule looks at: one model, completed as Triton completes it,
and the repository it is in.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triton_model_check.facts.image_tags import OTHER_PYTHON
from triton_model_check.facts.images import python_version
from triton_model_check.model.backends import Backend, infer_backend
from triton_model_check.model.folder import ModelFolder
from triton_model_check.model.loaded_files import FileToLoad, describe_file, files_to_load
from triton_model_check.model_config.target import ArchiveContent, Target
from triton_model_check.untrusted.limits import MAX_TEXT_BYTES

if TYPE_CHECKING:
    from triton_model_check.memory.estimate import DeclaredMemory
    from triton_model_check.model.ensemble_graph import EnsembleGraph
    from triton_model_check.model.packed_files import PackedFiles
    from triton_model_check.model.python_calls import ModelCalls, NamedTensor
    from triton_model_check.model.python_class import ModelClass
    from triton_model_check.model.python_gpu import GpuUseOfCode
    from triton_model_check.model.python_source import PythonSource
    from triton_model_check.model_files.model_file import ModelFile

_BACKENDS_WITH_RULES = ("onnxruntime", "pytorch", "tensorrt", "fil", "vllm", "tensorrtllm")
ENVIRONMENT_PARAMETER = "EXECUTION_ENV_PATH"
TENSORRT_LLM_PLACEHOLDER = "${triton_backend}"  # the backend in NVIDIA's templates


@dataclass(frozen=True)
class RepositoryContext:
    """The repository that a model is in, and the endpoint that loads it.

    ``folders``
        The folder of each model, by name.
    ``directories``
        The sub-directories of the root, hidden ones included, each with whether it is a link.
    ``root``
        The model whose ``config.pbtxt`` is at the root of the repository.
    ``loaded``, ``served``
        The models that the endpoint loads, and those that it loads by name and not only as a step.
    ``archives``
        The archives of a multi-model endpoint.
    ``is_packed``
        Whether packing makes the archives, which leaves out stray files.
    ``is_archive``
        Whether the folder is the content of one archive, whatever its layout.
    ``complete_bytes``
        Only the first bytes of each file, this many, are present; ``None`` means that files are
        complete.
    ``calls``
        The models that each Python model calls.
    ``declared_memory``
        What the user declares that each instance of a model takes.
    ``declared_calls``
        What the user declares that the largest call of a model takes of ``/dev/shm``, in bytes.
    ``root_files``
        The files beside the folders, if none of these is a model.
    ``others``, ``packed_files``
        The folders that are no models, and the files of each model that are packed, by name.
    """

    folders: Mapping[str, ModelFolder]
    directories: Mapping[str, bool]
    root: ModelFolder | None
    target: Target
    loaded: frozenset[str]
    served: tuple[str, ...]
    archives: tuple[ArchiveContent, ...] = ()
    is_packed: bool = True
    is_archive: bool = False
    complete_bytes: int | None = None
    calls: Mapping[str, ModelCalls] = field(default_factory=dict)
    others: Mapping[str, ModelFolder] = field(default_factory=dict)
    packed_files: Mapping[str, PackedFiles] = field(default_factory=dict)
    root_files: tuple[str, ...] = ()
    declared_memory: Mapping[str, DeclaredMemory] = field(default_factory=dict)
    declared_calls: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def models(self) -> dict[str, ModelUnderCheck]:
        """Every model by name."""
        return {name: ModelUnderCheck(folder, self) for name, folder in self.folders.items()}

    @cached_property
    def served_names(self) -> frozenset[str]:
        """The same as ``served``, to look names up."""
        return frozenset(self.served)

    @cached_property
    def scopes(self) -> tuple[str, ...]:
        """The scopes of the rules that apply to the repository as a whole."""
        has_environment = any("environment" in model.scopes for model in self.models.values())
        return ("repository", "environments") if has_environment else ("repository",)

    @cached_property
    def has_tensorrt_llm(self) -> bool:
        """Whether the repository has a model of TensorRT-LLM, whose templates have defaults."""
        configs = (folder.config for folder in self.folders.values() if folder.config is not None)
        return any(
            config.backend in ("tensorrtllm", TENSORRT_LLM_PLACEHOLDER) for config in configs
        )

    @cached_property
    def decoupled(self) -> frozenset[str]:
        """Models that are decoupled, or have a decoupled step at any depth."""
        users: dict[str, list[str]] = {}
        for folder in self.folders.values():
            for step in folder.step_models:
                users.setdefault(step, []).append(folder.name)
        found: set[str] = set()
        waiting = [
            name
            for name, folder in self.folders.items()
            if folder.config is not None and folder.config.model_transaction_policy.decoupled
        ]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += users.get(name, ())
        return frozenset(found)

    @cached_property
    def used_as_parts(self) -> frozenset[str]:
        """The models that a step of an ensemble or a Python model names, so that a fix does not
        give them a second use.
        """
        steps = (step for folder in self.folders.values() for step in folder.step_models)
        called = (name for calls in self.calls.values() for name in calls.models)
        return frozenset((*steps, *called))

    @cached_property
    def ensemble_cycles(self) -> Mapping[str, Sequence[str]]:
        """Ensembles that are steps of each other or of themselves,
        by the first name of each cycle.
        """
        from triton_model_check.model.ensemble_graph import find_cycles

        steps = {
            name: [step for step in folder.step_models if step in self.folders]
            for name, folder in self.folders.items()
        }
        return {min(cycle): sorted(cycle) for cycle in find_cycles(steps)}


class ModelUnderCheck:
    """One model under check; caches what several rules need."""

    def __init__(self, folder: ModelFolder, context: RepositoryContext) -> None:
        self.folder = folder
        self.context = context
        self.target = context.target
        self.config: Any = folder.config

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def is_served(self) -> bool:
        """Whether the endpoint loads the model by name."""
        return self.name in self.context.served_names

    @property
    def config_place(self) -> str:
        """The path of a finding about the configuration: ``config.pbtxt``,
        or the folder if there is none.
        """
        return self.folder.config_path if self.folder.has_config else self.folder.path

    @cached_property
    def completed(self) -> Backend:
        """Backend, platform and model file as Triton fills them in."""
        return infer_backend(self.folder)

    @cached_property
    def fields(self) -> frozenset[str]:
        """The fields of the configuration that are set."""
        listed = self.config.ListFields() if self.config is not None else ()
        return frozenset(descriptor.name for descriptor, _ in listed)

    @property
    def backend(self) -> str:
        return self.completed.backend

    @property
    def may_be_tensorrt(self) -> bool:
        """Whether the platform is TensorRT, or depends on a file that is stored elsewhere."""
        backend, platform, _ = self.completed
        return platform == "tensorrt_plan" or not (backend or platform or self.target.local_files)

    @cached_property
    def tensors(self) -> tuple[tuple[str, int, Any], ...]:
        """Every input and output of the configuration, with its field and index."""
        sides = (("input", self.config.input), ("output", self.config.output))
        return tuple(
            (field, index, tensor) for field, side in sides for index, tensor in enumerate(side)
        )

    @cached_property
    def graph(self) -> EnsembleGraph:
        """The graph of an ensemble."""
        from triton_model_check.model.ensemble_graph import EnsembleGraph

        return EnsembleGraph.from_model(self.folder)

    @cached_property
    def completes_tensors(self) -> bool:
        """Whether the backend may complete inputs and outputs when it loads the model.

        Backends other than Python do so only if something is missing. Source: triton documentation,
        "Auto-Generated Model Configuration".
        """
        if self.folder.is_ensemble or self.target.completes_configs is False:
            return False
        if self.backend == "python":
            is_unknown = not self.python_sources
            return is_unknown or any(source.may_complete for source in self.python_sources)
        if self.completed_configs:
            return False
        return self.config is None or not _declares_everything(self.config)

    @cached_property
    def python_sources(self) -> tuple[PythonSource, ...]:
        """The Python model files of the versions to load that exist and can be
        parsed within seconds.
        """
        return tuple(filter(None, self._python_files.values()))

    @cached_property
    def python_classes(self) -> tuple[tuple[PythonSource, ModelClass], ...]:
        """The class of each of ``python_sources`` of which everything is written in its file."""
        return tuple(
            (source, source.model_class)
            for source in self.python_sources
            if source.model_class is not None
        )

    @cached_property
    def python_tensors(self) -> tuple[tuple[PythonSource, tuple[NamedTensor, ...]], ...]:
        """The tensors that each of ``python_sources`` names."""
        from triton_model_check.model.python_calls import find_tensors

        return tuple(
            (source, tuple(find_tensors(source.index.tree, source.index.nodes)))
            for source in self.python_sources
            if source.index is not None
        )

    @cached_property
    def gpu_use(self) -> GpuUseOfCode | None:
        """How the code of a Python model uses a GPU; ``None`` if it does not show it."""
        from triton_model_check.model.python_gpu import gpu_use_of

        for source in self.python_sources:
            found = None if source.index is None else gpu_use_of(source.index)
            if found is not None:
                return found
        return None

    def forget_sources(self) -> None:
        """Free the syntax trees.

        The garbage collector would visit those of a thousand models many times.
        """
        _ = self.not_checked  # is found with them
        if self.target.gpu_count:
            _ = self.gpu_use
        for name in ("python_sources", "python_classes", "python_tensors", "_python_files"):
            self.__dict__.pop(name, None)

    @cached_property
    def _python_files(self) -> dict[str, PythonSource | None]:
        """The existing Python model files by path; ``None`` if parsing one would take too long."""
        file = self.completed.model_file
        if self.backend != "python" or not file.endswith(".py"):
            return {}
        from triton_model_check.model.python_source import PythonSource, is_over_budget, version_of

        python = version_of(self.image_python)
        found: dict[str, PythonSource | None] = {}
        for version in self.versions_to_load:
            parts = (version, *file.split("/"))
            path = self.folder.relative(version, file)
            content = self.folder.read(*parts)
            if content is not None:
                is_large = is_over_budget(content)
                found[path] = None if is_large else PythonSource(path, content, python)
            elif (self.folder.size_of(*parts) or 0) > MAX_TEXT_BYTES:
                found[path] = None
        return found

    @cached_property
    def _files_to_load(self) -> tuple[FileToLoad, ...]:
        target = self.target
        if not target.local_files or self.folder.config_fault or self.folder.is_ensemble:
            return ()
        return files_to_load(
            self.completed, self.config, target.compute_capability, target.gpu_count
        )

    @cached_property
    def model_files(self) -> tuple[ModelFile, ...]:
        """The model files of the versions to load, described; newest first."""
        image = self.target.image_version
        complete_bytes = self.context.complete_bytes
        return tuple(
            describe_file(
                file,
                self.folder.directory / version,
                self.config,
                image,
                complete_bytes,
                gpu_count=self.target.gpu_count,
                onnx_runtime=self.target.onnx_runtime,
            )
            for version in self.versions_to_load
            for file in self._files_to_load
            if version.isdigit()  # layout-version-name reports the others
        )

    def place_of(self, path: Path) -> str:
        """Return the path of a finding about a model file: the file,
        or the nearest folder that exists.
        """
        parts = path.relative_to(self.folder.directory).parts
        # From the outermost folder on, since a file name in config.pbtxt can have thousands of
        # parts.
        depth, below = 1, self.folder.directory / parts[0]
        while depth < len(parts) and os.path.lexists(below / parts[depth]):
            depth, below = depth + 1, below / parts[depth]
        return self.folder.relative(*parts[:depth])

    @cached_property
    def completed_configs(self) -> tuple[tuple[ModelFile, Any], ...]:
        """Each model file that can be read, with the configuration that the
        backend completes from it.
        """
        files = [file for file in self.model_files if self._can_be_compared(file)]
        if not files:
            return ()
        if self.target.completes_configs is False:
            return () if self.config is None else tuple((file, self.config) for file in files)
        from triton_model_check.model.completion import complete_from_onnx

        return tuple((file, complete_from_onnx(self.config, file, self.name)) for file in files)

    def _can_be_compared(self, file: ModelFile) -> bool:
        """Whether enough is known of a file to complete a configuration from it."""
        if file.format not in ("onnx", "ort") or file.faults:
            return False
        if not file.inputs and not file.outputs:
            return False
        return file.has_batch_dimension is not None or not self.is_auto_completed

    @cached_property
    def not_checked(self) -> tuple[str, ...]:
        """What of the model files is not checked: each file with the reason."""
        if self.folder.is_ensemble:
            return ()
        if self.backend == "python" and (self._python_files or self.target.local_files):
            large = [path for path, source in self._python_files.items() if source is None]
            return tuple(
                f"{path}: content not checked: it is too large to be parsed" for path in large
            )
        if self.model_files:
            return tuple(
                f"{self.place_of(file.path)}: {reason}"
                for file in self.model_files
                for reason in file.not_checked
            )
        return (f"{self.folder.path}: model files not checked",)

    @cached_property
    def final_config(self) -> Any:
        """The configuration as the server completes it;
        the written one if the model file does not tell.
        """
        return self.completed_configs[0][1] if self.completed_configs else self.config

    @property
    def is_auto_completed(self) -> bool:
        """Whether the backend completes the configuration from the model."""
        from triton_model_check.model.completion import is_complete

        if self.target.completes_configs is False:
            return False
        return self.config is None or not is_complete(self.config)

    @property
    def config_parameters(self) -> Mapping[str, Any]:
        """The ``parameters`` of the configuration by key."""
        return {} if self.config is None else self.config.parameters

    def parameter(self, key: str) -> str:
        """Return the string value of a parameter, or "" if it is absent."""
        parameters = self.config_parameters
        return str(parameters[key].string_value) if key in parameters else ""

    @cached_property
    def image_python(self) -> str | None:
        """The Python of the target's image, such as ``"3.12"``, or ``None`` if unknown."""
        return OTHER_PYTHON.get(self.target.image) or python_version(self.target.image_version)

    @property
    def versions_to_load(self) -> tuple[str, ...]:
        """Names of the version directories that the version policy loads, newest first."""
        return self.folder.versions_to_load

    @cached_property
    def scopes(self) -> tuple[str, ...]:
        """The scopes of the rules that apply to this model."""
        scopes = ["model", "calls"] if self.name in self.context.calls else ["model"]
        if self.folder.config_fault is not None:
            return (*scopes, "fault")
        scopes += ["file"] if self._files_to_load else []
        if self.folder.is_ensemble:
            scopes.append("ensemble")
        elif self.backend == "python":
            has_environment = ENVIRONMENT_PARAMETER in self.config_parameters
            scopes += ["python", "environment"] if has_environment else ["python"]
        elif self.backend in _BACKENDS_WITH_RULES:
            scopes.append(self.backend)
        if self.config is not None:
            is_sequence = self.config.HasField("sequence_batching")
            scopes += ["config", "sequence"] if is_sequence else ["config"]
            scopes += ["tensorrtllm-template"] if self.context.has_tensorrt_llm else []
        return tuple(scopes)


def _declares_everything(config: Any) -> bool:
    if not config.input or not config.output:
        return False
    return all(
        tensor.data_type and tensor.dims
        for side in (config.input, config.output)
        for tensor in side
    )
