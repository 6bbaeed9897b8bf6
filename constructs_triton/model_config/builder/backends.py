"""Backend classes, each with the options of one backend.

``ModelConfig(backend=...)`` accepts an instance of these classes and sets the name, platform and parameters
from it. For any other backend, pass its name as a string. TensorRT, ONNX Runtime, PyTorch and TensorFlow are
written as ``platform``, which also determines the file format and which every image accepts.

Sources of the parameters: the READMEs of triton-inference-server/python_backend, onnxruntime_backend,
pytorch_backend, tensorflow_backend, dali_backend, openvino_backend, vllm_backend, fil_backend
docs/model_config.md and tensorrtllm_backend docs/model_config.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from constructs_triton.errors import InvalidValueError
from constructs_triton.model_config.builder.instances import ModelInstanceGroup

__all__ = [
    "Backend",
    "DaliBackend",
    "FilBackend",
    "OnnxruntimeBackend",
    "OpenvinoBackend",
    "PythonBackend",
    "PytorchBackend",
    "TensorflowBackend",
    "TensorrtBackend",
    "TensorrtllmBackend",
    "VllmBackend",
]


def _parameter(key: str, *, yes: str = "true", no: str = "false") -> Any:
    """An option that becomes the entry ``key`` of ``parameters``, or no entry if it is ``None``."""
    return field(default=None, metadata={"key": key, True: yes, False: no})


@dataclass(frozen=True, kw_only=True)
class Backend:
    """Base class of the backends with options."""

    NAME: ClassVar[str] = ""
    PLATFORM: ClassVar[str] = ""
    INPUT_NAMES: ClassVar[str] = ""
    OUTPUT_NAMES: ClassVar[str] = ""

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for item in fields(self):
            value = getattr(self, item.name)
            if value is None and item.default is MISSING:
                raise InvalidValueError(
                    f"{type(self).__name__}.{item.name}: is required, got None; pass a value"
                )
            if value is not None and not _fits(value, hints[item.name]):
                allowed = " or ".join(_readable(kind) for kind in _kinds(hints[item.name]))
                raise InvalidValueError(
                    f"{type(self).__name__}.{item.name}: invalid value, got {value!r}; pass {allowed}"
                )

    @property
    def platform(self) -> str:
        """The ``platform`` of the configuration, or "" if the configuration sets ``backend``."""
        return self.PLATFORM

    def parameters(self) -> dict[str, str]:
        """Return the options that are set, as entries of ``parameters``."""
        given = ((item, getattr(self, item.name)) for item in fields(self) if "key" in item.metadata)
        return {
            item.metadata["key"]: item.metadata[value] if isinstance(value, bool) else str(value)
            for item, value in given
            if value is not None
        }

    def complete(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return fields of a ``ModelConfig``, completed for the backend; given values have priority."""
        platform = values["platform"] or self.platform
        return {
            "backend": "" if self.PLATFORM or self.platform else self.NAME,
            "platform": platform,
            "parameters": {**self.parameters(), **values["parameters"]},
            "input": _named(values["input"], self.INPUT_NAMES),
            "output": _named(values["output"], self.OUTPUT_NAMES),
        }


def _kinds(hint: Any) -> list[Any]:
    """The types and literal values that an option's annotation allows, except ``None``."""
    if get_origin(hint) in (Union, UnionType):
        return [kind for part in get_args(hint) if part is not NoneType for kind in _kinds(part)]
    return list(get_args(hint)) if get_origin(hint) is Literal else [hint]


def _fits(value: Any, hint: Any) -> bool:
    for kind in _kinds(hint):
        if not isinstance(kind, type):
            if value == kind and not isinstance(value, bool):
                return True
        elif isinstance(value, bool):
            if kind is bool:
                return True
        elif isinstance(value, kind) or (kind is float and isinstance(value, int)):
            return True
    return False


def _readable(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else repr(kind)


def _named(tensors: Any, pattern: str) -> tuple[Any, ...]:
    """Name tensors without a name by position, if the backend uses such names."""
    return tuple(
        replace(tensor, name=pattern.format(index)) if pattern and not tensor.name else tensor
        for index, tensor in enumerate(tensors)
    )


@dataclass(frozen=True, kw_only=True)
class PythonBackend(Backend):
    """A ``model.py`` with a ``TritonPythonModel``.

    ``execution_env_path`` is an archive made by conda-pack. A relative path starts at the model's folder: it
    is written with ``$$TRITON_MODEL_DIRECTORY/`` before it. ``force_cpu_only_input_tensors=False`` allows
    inputs on the GPU, as DLPack tensors.
    """

    NAME: ClassVar[str] = "python"

    execution_env_path: str | Path | None = _parameter("EXECUTION_ENV_PATH")  # noqa: RUF009 - makes a field
    force_cpu_only_input_tensors: bool | None = _parameter("FORCE_CPU_ONLY_INPUT_TENSORS", yes="yes", no="no")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.execution_env_path is None:
            return
        path = str(self.execution_env_path)
        if not path:
            raise InvalidValueError(
                "PythonBackend.execution_env_path: must be the path of an archive, got ''; omit it"
            )
        if not path.startswith(("/", "$$")):
            path = f"$$TRITON_MODEL_DIRECTORY/{path.removeprefix('./')}"
        object.__setattr__(self, "execution_env_path", path)


@dataclass(frozen=True, kw_only=True)
class OnnxruntimeBackend(Backend):
    """A ``model.onnx``.

    A thread count of 0 means one thread for each core. ``execution_mode`` 1 is parallel. Options of TensorRT,
    OpenVINO and CUDA belong to ``ModelOptimizationPolicy.ExecutionAccelerators``.
    """

    NAME: ClassVar[str] = "onnxruntime"
    PLATFORM: ClassVar[str] = "onnxruntime_onnx"

    intra_op_thread_count: int | None = _parameter("intra_op_thread_count")
    inter_op_thread_count: int | None = _parameter("inter_op_thread_count")
    execution_mode: Literal[0, 1] | None = _parameter("execution_mode")
    enable_mem_arena: bool | None = _parameter("enable_mem_arena", yes="1", no="0")
    enable_mem_pattern: bool | None = _parameter("enable_mem_pattern", yes="1", no="0")


@dataclass(frozen=True, kw_only=True)
class TensorrtBackend(Backend):
    """A ``model.plan``, built for the GPU and the TensorRT version that run it."""

    NAME: ClassVar[str] = "tensorrt"
    PLATFORM: ClassVar[str] = "tensorrt_plan"


@dataclass(frozen=True, kw_only=True)
class PytorchBackend(Backend):
    """A TorchScript ``model.pt``, whose tensors have positions and no names.

    Inputs and outputs without a name get the names ``INPUT__0``, ``INPUT__1``, ..., ``OUTPUT__0``, ... in the
    order of ``forward``.
    """

    NAME: ClassVar[str] = "pytorch"
    PLATFORM: ClassVar[str] = "pytorch_libtorch"
    INPUT_NAMES: ClassVar[str] = "INPUT__{}"
    OUTPUT_NAMES: ClassVar[str] = "OUTPUT__{}"

    inference_mode: bool | None = _parameter("INFERENCE_MODE")
    disable_optimized_execution: bool | None = _parameter("DISABLE_OPTIMIZED_EXECUTION")
    enable_weight_sharing: bool | None = _parameter("ENABLE_WEIGHT_SHARING")
    intra_op_thread_count: int | None = _parameter("INTRA_OP_THREAD_COUNT")
    inter_op_thread_count: int | None = _parameter("INTER_OP_THREAD_COUNT")


@dataclass(frozen=True, kw_only=True)
class TensorflowBackend(Backend):
    """A ``model.savedmodel`` folder or a ``model.graphdef``, for images that contain TensorFlow."""

    NAME: ClassVar[str] = "tensorflow"

    format: Literal["savedmodel", "graphdef"] = "savedmodel"
    num_intra_threads: int | None = _parameter("TF_NUM_INTRA_THREADS")
    num_inter_threads: int | None = _parameter("TF_NUM_INTER_THREADS")
    graph_tag: str | None = _parameter("TF_GRAPH_TAG")
    signature_def: str | None = _parameter("TF_SIGNATURE_DEF")

    @property
    def platform(self) -> str:
        """``tensorflow_savedmodel`` or ``tensorflow_graphdef``, which the backend requires."""
        return f"tensorflow_{self.format}"


@dataclass(frozen=True, kw_only=True)
class DaliBackend(Backend):
    """A serialized DALI pipeline, ``model.dali``; colons separate the names of outputs to split."""

    NAME: ClassVar[str] = "dali"

    num_threads: int | None = _parameter("num_threads")
    split_along_outer_axis: str | None = _parameter("split_along_outer_axis")


@dataclass(frozen=True, kw_only=True)
class FilBackend(Backend):
    """Decision trees of XGBoost, LightGBM, scikit-learn and cuML.

    ``model_type`` determines the name of the model file: ``xgboost.model``, ``xgboost.json``,
    ``xgboost.ubj``, ``model.txt`` or ``checkpoint.tl``. ``output_class`` is for classifiers;
    ``predict_proba`` returns probabilities. Tensors without a name get the names ``input__0`` and
    ``output__0``.
    """

    NAME: ClassVar[str] = "fil"
    INPUT_NAMES: ClassVar[str] = "input__{}"
    OUTPUT_NAMES: ClassVar[str] = "output__{}"

    model_type: (
        Literal["xgboost", "xgboost_json", "xgboost_ubj", "lightgbm", "treelite_checkpoint"] | None
    ) = _parameter("model_type")
    output_class: bool | None = _parameter("output_class")
    predict_proba: bool | None = _parameter("predict_proba")
    threshold: float | None = _parameter("threshold")
    storage_type: Literal["AUTO", "DENSE", "SPARSE", "SPARSE8"] | None = _parameter("storage_type")


@dataclass(frozen=True, kw_only=True)
class OpenvinoBackend(Backend):
    """A ``model.xml`` with its ``model.bin``; ``num_streams`` is a number, ``"AUTO"`` or ``"NUMA"``.

    ``enable_batch_padding`` allows batches smaller than ``max_batch_size``, which fail otherwise.
    """

    NAME: ClassVar[str] = "openvino"

    target_device: str | None = _parameter("TARGET_DEVICE")
    performance_hint: Literal["LATENCY", "THROUGHPUT"] | None = _parameter("PERFORMANCE_HINT")
    num_streams: int | Literal["AUTO", "NUMA"] | None = _parameter("NUM_STREAMS")
    inference_num_threads: int | None = _parameter("INFERENCE_NUM_THREADS")
    enable_batch_padding: bool | None = _parameter("ENABLE_BATCH_PADDING", yes="YES", no="NO")
    skip_ov_dynamic_batchsize: bool | None = _parameter("SKIP_OV_DYNAMIC_BATCHSIZE", yes="YES", no="NO")
    reshape_io_layers: bool | None = _parameter("RESHAPE_IO_LAYERS", yes="YES", no="NO")


@dataclass(frozen=True, kw_only=True)
class VllmBackend(Backend):
    """A large language model; ``1/model.json`` contains the arguments of the engine.

    vLLM chooses the devices itself, so the default instance group is ``KIND_MODEL``. The backend completes
    inputs and outputs.
    """

    NAME: ClassVar[str] = "vllm"

    def complete(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return fields of a ``ModelConfig``, with an instance group that lets vLLM choose the devices."""
        groups = values["instance_group"] or (ModelInstanceGroup(kind="KIND_MODEL", count=1),)
        return {**super().complete(values), "instance_group": groups}


@dataclass(frozen=True, kw_only=True)
class TensorrtllmBackend(Backend):
    """A TensorRT-LLM engine; ``gpt_model_path`` is the folder of the engine, on the server."""

    NAME: ClassVar[str] = "tensorrtllm"

    gpt_model_path: str = field(metadata={"key": "gpt_model_path"})
    gpt_model_type: Literal["inflight_fused_batching", "V1"] = field(
        default="inflight_fused_batching", metadata={"key": "gpt_model_type"}
    )
    batch_scheduler_policy: Literal["max_utilization", "guaranteed_no_evict"] | None = _parameter(
        "batch_scheduler_policy"
    )
    max_beam_width: int | None = _parameter("max_beam_width")
    kv_cache_free_gpu_mem_fraction: float | None = _parameter("kv_cache_free_gpu_mem_fraction")
    enable_kv_cache_reuse: bool | None = _parameter("enable_kv_cache_reuse")
    exclude_input_in_output: bool | None = _parameter("exclude_input_in_output")
