"""Backend classes, each with the options of one backend.

``ModelConfig(backend=...)`` accepts an instance of these classes and sets the name, platform and
parameters from it. For any other backend, pass its name as a string. TensorRT, ONNX Runtime,
PyTorch and TensorFlow are written as ``platform``, which also determines the file format and which
every image accepts.

Sources of the parameters: the READMEs of triton-inference-server/python_backend,
onnxruntime_backend, pytorch_backend, tensorflow_backend, dali_backend, openvino_backend,
vllm_backend, fil_backend docs/model_config.md and tensorrtllm_backend docs/model_config.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.builder.backend import Backend, parameter
from triton_model_check.builder.instances import ModelInstanceGroup


@dataclass(frozen=True, kw_only=True)
class PythonBackend(Backend):
    """A ``model.py`` with a ``TritonPythonModel``.

    Args:
        execution_env_path: Archive made by ``constructs-triton env build`` or conda-pack. A
            relative path starts at the model's folder: it is written with
            ``$$TRITON_MODEL_DIRECTORY/`` before it. Default: the image's Python.
        force_cpu_only_input_tensors: ``False`` allows inputs on the GPU, as DLPack tensors.
            Default: the backend's, yes.
    """

    NAME: ClassVar[str] = "python"

    execution_env_path: str | Path | None = parameter("EXECUTION_ENV_PATH")  # noqa: RUF009 - makes a field
    force_cpu_only_input_tensors: bool | None = parameter(
        "FORCE_CPU_ONLY_INPUT_TENSORS", yes="yes", no="no"
    )

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

    Options of TensorRT, OpenVINO and CUDA belong to
    ``ModelOptimizationPolicy.ExecutionAccelerators``.

    Args:
        intra_op_thread_count: Threads within a node; 0 is one for each core.
        inter_op_thread_count: Threads across nodes if ``execution_mode`` is 1; 0 is one for each
            core.
        execution_mode: 0 runs nodes one after the other, 1 in parallel. Default: 0.
        enable_mem_arena: Whether memory is kept for later requests. Default: ONNX Runtime's.
        enable_mem_pattern: Whether memory is planned from the shapes of earlier requests. Default:
            ONNX Runtime's.
    """

    NAME: ClassVar[str] = "onnxruntime"
    PLATFORM: ClassVar[str] = "onnxruntime_onnx"

    intra_op_thread_count: int | None = parameter("intra_op_thread_count")
    inter_op_thread_count: int | None = parameter("inter_op_thread_count")
    execution_mode: Literal[0, 1] | None = parameter("execution_mode")
    enable_mem_arena: bool | None = parameter("enable_mem_arena", yes="1", no="0")
    enable_mem_pattern: bool | None = parameter("enable_mem_pattern", yes="1", no="0")


@dataclass(frozen=True, kw_only=True)
class TensorrtBackend(Backend):
    """A ``model.plan``, built for the GPU and the TensorRT version that run it."""

    NAME: ClassVar[str] = "tensorrt"
    PLATFORM: ClassVar[str] = "tensorrt_plan"


@dataclass(frozen=True, kw_only=True)
class PytorchBackend(Backend):
    """A TorchScript ``model.pt``, whose tensors have positions and no names.

    Inputs and outputs without a name get the names ``INPUT__0``, ``INPUT__1``, ..., ``OUTPUT__0``,
    ... in the order of ``forward``.

    Args:
        inference_mode: Whether PyTorch's inference mode is used, which records no gradients.
            Default: the backend's, yes.
        disable_optimized_execution: Whether the optimizations that slow down the first requests are
            off. Default: no.
        enable_weight_sharing: Whether instances on one device share the weights. Not for models
            that keep state. Default: no.
        intra_op_thread_count: Threads within an operation. Of all models, the first one that is
            loaded decides. Default: one for each core.
        inter_op_thread_count: Threads across operations. Of all models, the first one that is
            loaded decides. Default: one for each core.
    """

    NAME: ClassVar[str] = "pytorch"
    PLATFORM: ClassVar[str] = "pytorch_libtorch"
    INPUT_NAMES: ClassVar[str] = "INPUT__{}"
    OUTPUT_NAMES: ClassVar[str] = "OUTPUT__{}"

    inference_mode: bool | None = parameter("INFERENCE_MODE")
    disable_optimized_execution: bool | None = parameter("DISABLE_OPTIMIZED_EXECUTION")
    enable_weight_sharing: bool | None = parameter("ENABLE_WEIGHT_SHARING")
    intra_op_thread_count: int | None = parameter("INTRA_OP_THREAD_COUNT")
    inter_op_thread_count: int | None = parameter("INTER_OP_THREAD_COUNT")


@dataclass(frozen=True, kw_only=True)
class TensorflowBackend(Backend):
    """A ``model.savedmodel`` folder or a ``model.graphdef``, for images that contain TensorFlow.

    Args:
        format: ``"savedmodel"`` for a folder ``model.savedmodel``, ``"graphdef"`` for a file
            ``model.graphdef``.
        num_intra_threads: Threads within an operation. Default: TensorFlow decides.
        num_inter_threads: Operations that run at a time. Default: TensorFlow decides.
        graph_tag: Tag of the graph in a SavedModel. Default: the backend's.
        signature_def: Signature in a SavedModel. Default: the backend's.
    """

    NAME: ClassVar[str] = "tensorflow"

    format: Literal["savedmodel", "graphdef"] = "savedmodel"
    num_intra_threads: int | None = parameter("TF_NUM_INTRA_THREADS")
    num_inter_threads: int | None = parameter("TF_NUM_INTER_THREADS")
    graph_tag: str | None = parameter("TF_GRAPH_TAG")
    signature_def: str | None = parameter("TF_SIGNATURE_DEF")

    @property
    def platform(self) -> str:
        """``tensorflow_savedmodel`` or ``tensorflow_graphdef``, which the backend requires."""
        return f"tensorflow_{self.format}"


@dataclass(frozen=True, kw_only=True)
class DaliBackend(Backend):
    """A serialized DALI pipeline, ``model.dali``.

    Args:
        num_threads: CPU threads of the pipeline.
        split_along_outer_axis: Names of the outputs to split along their first axis, separated by
            colons.
    """

    NAME: ClassVar[str] = "dali"

    num_threads: int | None = parameter("num_threads")
    split_along_outer_axis: str | None = parameter("split_along_outer_axis")


@dataclass(frozen=True, kw_only=True)
class FilBackend(Backend):
    """Decision trees of XGBoost, LightGBM, scikit-learn and cuML.

    Tensors without a name get the names ``input__0`` and ``output__0``.

    Args:
        model_type: Format of the model file, which also determines its name: ``xgboost.model``,
            ``xgboost.json``, ``xgboost.ubj``, ``model.txt`` or ``checkpoint.tl``.
        output_class: Whether the model is a classifier; otherwise it is a regressor.
        predict_proba: Whether a classifier returns a score for each class instead of the class.
            Default: no.
        threshold: Score from which a binary classifier answers yes. Default: 0.5.
        storage_type: How trees are stored on the GPU; the sparse forms need less memory.
    """

    NAME: ClassVar[str] = "fil"
    INPUT_NAMES: ClassVar[str] = "input__{}"
    OUTPUT_NAMES: ClassVar[str] = "output__{}"

    model_type: (
        Literal["xgboost", "xgboost_json", "xgboost_ubj", "lightgbm", "treelite_checkpoint"] | None
    ) = parameter("model_type")
    output_class: bool | None = parameter("output_class")
    predict_proba: bool | None = parameter("predict_proba")
    threshold: float | None = parameter("threshold")
    storage_type: Literal["AUTO", "DENSE", "SPARSE", "SPARSE8"] | None = parameter("storage_type")


@dataclass(frozen=True, kw_only=True)
class OpenvinoBackend(Backend):
    """A ``model.xml`` with its ``model.bin``.

    Args:
        target_device: OpenVINO's device. Default: ``"CPU"``.
        performance_hint: Whether OpenVINO optimizes for latency or for throughput.
        num_streams: Requests that run in parallel; ``"AUTO"`` or ``"NUMA"`` let OpenVINO decide.
        inference_num_threads: Highest number of CPU threads. Default: one for each core.
        enable_batch_padding: Whether smaller batches than ``max_batch_size`` are filled up; they
            fail otherwise.
        skip_ov_dynamic_batchsize: Whether the batch size is fixed at ``max_batch_size``, for models
            that need it. Default: no.
        reshape_io_layers: Whether the model gets the ``dims`` of the configuration. Default: no, it
            keeps those of its file.
    """

    NAME: ClassVar[str] = "openvino"

    target_device: str | None = parameter("TARGET_DEVICE")
    performance_hint: Literal["LATENCY", "THROUGHPUT"] | None = parameter("PERFORMANCE_HINT")
    num_streams: int | Literal["AUTO", "NUMA"] | None = parameter("NUM_STREAMS")
    inference_num_threads: int | None = parameter("INFERENCE_NUM_THREADS")
    enable_batch_padding: bool | None = parameter("ENABLE_BATCH_PADDING", yes="YES", no="NO")
    skip_ov_dynamic_batchsize: bool | None = parameter(
        "SKIP_OV_DYNAMIC_BATCHSIZE", yes="YES", no="NO"
    )
    reshape_io_layers: bool | None = parameter("RESHAPE_IO_LAYERS", yes="YES", no="NO")


@dataclass(frozen=True, kw_only=True)
class VllmBackend(Backend):
    """A large language model; ``1/model.json`` contains the arguments of the engine.

    vLLM chooses the devices itself, so the default instance group is ``KIND_MODEL``. The backend
    completes inputs and outputs.
    """

    NAME: ClassVar[str] = "vllm"

    def complete(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return fields of a ``ModelConfig``, with an instance group that lets vLLM choose the
        devices.

        Args:
            values: All fields of the ``ModelConfig``, by name.
        """
        groups = values["instance_group"] or (ModelInstanceGroup(kind="KIND_MODEL", count=1),)
        return {**super().complete(values), "instance_group": groups}


@dataclass(frozen=True, kw_only=True)
class TensorrtllmBackend(Backend):
    """A TensorRT-LLM engine.

    Args:
        gpt_model_path: Folder of the engine, on the server.
        gpt_model_type: ``"inflight_fused_batching"`` lets requests join a running batch, ``"V1"``
            does not.
        batch_scheduler_policy: ``"max_utilization"`` runs as many requests as possible and may
            pause some; ``"guaranteed_no_evict"`` never pauses one. Default:
            ``"guaranteed_no_evict"``.
        max_beam_width: Largest beam width of a request. Default: 1.
        kv_cache_free_gpu_mem_fraction: Fraction of the GPU memory that is free after loading, 0 to
            1, for the key-value cache. Default: 0.9.
        enable_kv_cache_reuse: Whether cached values of equal prompt beginnings are used again.
        exclude_input_in_output: Whether the response has only the new tokens, without the prompt.
            Default: no.
    """

    NAME: ClassVar[str] = "tensorrtllm"

    gpt_model_path: str = field(metadata={"key": "gpt_model_path"})
    gpt_model_type: Literal["inflight_fused_batching", "V1"] = field(
        default="inflight_fused_batching", metadata={"key": "gpt_model_type"}
    )
    batch_scheduler_policy: Literal["max_utilization", "guaranteed_no_evict"] | None = parameter(
        "batch_scheduler_policy"
    )
    max_beam_width: int | None = parameter("max_beam_width")
    kv_cache_free_gpu_mem_fraction: float | None = parameter("kv_cache_free_gpu_mem_fraction")
    enable_kv_cache_reuse: bool | None = parameter("enable_kv_cache_reuse")
    exclude_input_in_output: bool | None = parameter("exclude_input_in_output")
