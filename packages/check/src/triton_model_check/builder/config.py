"""The content of a ``config.pbtxt`` as a value."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Self

from constructs_triton_core.errors import InvalidValueError, ModelConfigError
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.spelling import did_you_mean
from constructs_triton_core.untrusted.regular_files import read_regular
from constructs_triton_core.untrusted.written_files import write_whole
from triton_model_check.builder.backend import Backend
from triton_model_check.builder.checking import config_problems, refuse_errors, report
from triton_model_check.builder.derived_config import derive
from triton_model_check.builder.instances import ModelInstanceGroup
from triton_model_check.builder.lifecycle import (
    ModelMetrics,
    ModelOperations,
    ModelRepositoryAgents,
    ModelResponseCache,
    ModelTransactionPolicy,
    ModelVersionPolicy,
    ModelWarmup,
)
from triton_model_check.builder.optimization import ModelOptimizationPolicy
from triton_model_check.builder.scheduling import (
    ModelDynamicBatching,
    ModelEnsembling,
    ModelSequenceBatching,
)
from triton_model_check.builder.tensors import (
    BatchInput,
    BatchOutput,
    ModelInput,
    ModelOutput,
)
from triton_model_check.builder.typed_message import TypedMessage
from triton_model_check.checks.report import Report
from triton_model_check.model.folder import CONFIG_FILE
from triton_model_check.model_config.text import format_model_config, parse_model_config

__all__ = ["ModelConfig"]


class ModelConfig(TypedMessage):
    """The configuration of one model.

    The fields have the names of ``model_config.proto``. The constructor and :meth:`with_` raise an
    error if Triton would reject the configuration. A configuration that was read from a file is
    checked only by :meth:`check`.

    Args:
        name: Name of the model, which is that of its folder. Empty: the name of the folder.
        platform: Framework and file format, such as ``"onnxruntime_onnx"``, or ``"ensemble"``.
            Usually not needed if ``backend`` is set.
        backend: Name of the backend, or one of the backend classes, which also sets the platform
            and parameters.
        runtime: File name of the backend's library. Empty: Triton chooses it.
        version_policy: Which versions are served. Default: the newest.
        max_batch_size: Largest batch. 0: no batching, and ``dims`` are the full shapes.
        input: Inputs. The backend may complete them from the model file.
        output: Outputs. The backend may complete them from the model file.
        batch_input: Inputs that the backend computes for each batch.
        batch_output: Outputs that the backend splits among the requests of a batch.
        optimization: Optimizations of the backend. Default: the backend's.
        dynamic_batching: Combine requests into batches. At most one of the three schedulers can be
            set.
        sequence_batching: Send the requests of a sequence to one instance.
        ensemble_scheduling: Steps of an ensemble; ``Ensemble`` writes them.
        instance_group: Instances. Empty: one on each GPU, or one on the CPU.
        default_model_filename: Name of the model file in the version folder. Empty: the backend's,
            such as ``model.onnx``.
        cc_model_filenames: Model file by CUDA compute capability, such as ``{"8.6":
            "model_86.plan"}``.
        metric_tags: Tags of the metrics that Triton reports about the model.
        parameters: Options of the backend or of your own code.
        model_warmup: Requests that Triton runs before the model is ready.
        model_operations: Libraries with custom operations.
        model_transaction_policy: Whether a request may have several responses. Default: exactly
            one.
        model_repository_agents: Agents that handle the files before the model is loaded.
        response_cache: Whether responses are cached. Default: no.
        model_metrics: Options of the model's metrics. Default: the server's.

    Raises:
        InvalidValueError: a value does not fit its field, or Triton would reject it.
    """

    name: str = ""
    platform: str = ""
    backend: str | Backend = ""
    runtime: str = ""
    version_policy: ModelVersionPolicy | None = None
    max_batch_size: int = 0
    input: Sequence[ModelInput] = ()
    output: Sequence[ModelOutput] = ()
    batch_input: Sequence[BatchInput] = ()
    batch_output: Sequence[BatchOutput] = ()
    optimization: ModelOptimizationPolicy | None = None
    dynamic_batching: ModelDynamicBatching | None = None
    sequence_batching: ModelSequenceBatching | None = None
    ensemble_scheduling: ModelEnsembling | None = None
    instance_group: Sequence[ModelInstanceGroup] = ()
    default_model_filename: str = ""
    cc_model_filenames: Mapping[str, str] = field(default_factory=dict)
    metric_tags: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    model_warmup: Sequence[ModelWarmup] = ()
    model_operations: ModelOperations | None = None
    model_transaction_policy: ModelTransactionPolicy | None = None
    model_repository_agents: ModelRepositoryAgents | None = None
    response_cache: ModelResponseCache | None = None
    model_metrics: ModelMetrics | None = None

    def __post_init__(self) -> None:
        self._complete_backend()
        refuse_errors(self.to_message())

    def _complete_backend(self) -> None:
        if isinstance(self.backend, Backend):
            backend = self.backend
            vars(self)["backend"] = ""
            super().__post_init__()  # a backend completes only what fits its fields
            vars(self).update(backend.complete(vars(self)))
        super().__post_init__()

    # --- composition ------------------------------------------------------------------------------

    def with_(self, **changes: Any) -> Self:
        """Return a copy with other values for these fields.

        Errors that the configuration already had, because it was read from a file, are not reported
        again.

        Args:
            **changes: New values by field.

        Raises:
            InvalidValueError: a field is unknown, a value does not fit, or Triton would reject it.
        """
        if isinstance(changes.get("backend"), Backend):
            changes = {"platform": "", **changes}
        changed = self._with(changes)
        changed._complete_backend()
        refuse_errors(changed.to_message(), known=config_problems(self.to_message()))
        return changed

    @classmethod
    def draft(cls, **fields: Any) -> Self:
        """Return a configuration that is not checked, because it is not complete yet.

        Args:
            **fields: Values by field.

        Raises:
            InvalidValueError: a field is unknown, or a value does not fit.
        """
        draft = cls()._with(fields)
        draft._complete_backend()
        return draft

    def _with(self, changes: Mapping[str, Any]) -> Self:
        """Return a copy with other values of some fields."""
        for name in changes:
            if name not in vars(self):
                hint = did_you_mean(name, vars(self), "use a field of model_config.proto")
                raise InvalidValueError(
                    f"ModelConfig: has no field with this name, got {name!r}; {hint}"
                )
        changed = object.__new__(type(self))
        vars(changed).update({**vars(self), **changes})
        return changed

    # --- model files ------------------------------------------------------------------------------

    @classmethod
    def from_model_file(
        cls,
        path: str | os.PathLike[str],
        *,
        name: str | None = None,
        max_batch_size: int | None = None,
        with_warmup: bool = False,
        **fields: Any,
    ) -> Self:
        """Derive the configuration of a model from its file.

        An ONNX model gets the configuration that Triton would complete for it. Of other formats,
        the file says less; the error names what you must set. The file is not copied.
        ``ModelSource.from_model_file`` and ``constructs-triton model new`` do both.

        ``path``
            A model of ONNX, TorchScript, TensorRT, OpenVINO, DALI or decision trees, or the folder
            of a SavedModel. The end of its name decides which, for example ``.onnx``.
        ``name``
            Name of the model. Default: the name of the file without its ending.
        ``max_batch_size``
            Largest batch; 0 means that Triton does not batch. Default: that of Triton, which is 4
            for an ONNX model with a batch dimension.
        ``with_warmup``
            Whether Triton runs the model once with zeros before it is ready. Default: no.
        ``fields``
            Other fields of ``ModelConfig``. Each entry of ``input`` and ``output`` replaces what
            the file says about the tensor of that name.

        Raises:
            InvalidValueError: Triton would not load the file, the file and the fields contradict
                each other, or a field is missing that the file does not say.
        """
        derived = derive(
            cls.draft,
            path,
            name=name,
            max_batch_size=max_batch_size,
            with_warmup=with_warmup,
            fields=fields,
        )
        derived.raise_faults()
        return cls.from_message(derived.message)

    # --- text and files ---------------------------------------------------------------------------

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read a ``config.pbtxt``, or the one in a model's folder.

        The result has everything except comments.

        Args:
            path: Path of a ``config.pbtxt``, or of a folder that contains one.

        Raises:
            ModelConfigError: the file cannot be read, or Triton would not parse it.
        """
        file = Path(path)
        if file.is_dir():
            file /= CONFIG_FILE
        try:
            content = read_regular(file)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ModelConfigError(
                Finding(
                    "layout-config-unreadable",
                    Severity.ERROR,
                    str(file),
                    f"cannot be read ({reason.lower()})",
                    "pass the path of a config.pbtxt or of a model's folder",
                )
            ) from error
        return cls.from_message(parse_model_config(content, str(file)))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Parse the content of a ``config.pbtxt``; see :meth:`read`.

        Args:
            text: The content of the file.
        """
        return cls.from_message(parse_model_config(text))

    def to_text(self) -> str:
        """Return the content of ``config.pbtxt``; equal configurations give equal text."""
        return format_model_config(self.to_message())

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write ``config.pbtxt`` and return its path.

        The file is replaced as a whole or not at all. A model's folder is created if it does not
        exist.

        Args:
            path: Folder of the model, or a path that ends in ``.pbtxt``.

        Raises:
            InvalidValueError: the file cannot be written.
        """
        file = Path(path)
        is_folder = file.is_dir() or file.suffix != ".pbtxt"
        if is_folder:
            file /= CONFIG_FILE
        try:
            if is_folder:
                file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, self.to_text())
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InvalidValueError(
                f"{file}: cannot be written ({reason}); pass the folder of a model, "
                "or a path in an existing folder"
            ) from error
        return file

    def check(self) -> Report:
        """Return all findings about this configuration, including warnings,
        without looking at files.
        """
        return report(self.to_message())
