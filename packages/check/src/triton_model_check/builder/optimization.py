"""Optimizations of the server and the backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal

from triton_model_check.builder.typed_message import TypedMessage


class ModelOptimizationPolicy(TypedMessage):
    """Graph optimization, execution accelerators, CUDA graphs and pinned memory.

    Args:
        graph: Graph optimization level. Default: that of the framework.
        priority: Priority over other models on the GPU. Only for TensorRT.
        cuda: CUDA graphs and streams. Only for TensorRT.
        execution_accelerators: Accelerators for the models of ONNX Runtime and TensorFlow. Default:
            none.
        input_pinned_memory: Whether inputs are copied to the GPU through pinned memory. Default:
            yes.
        output_pinned_memory: Whether outputs are copied from the GPU through pinned memory.
            Default: yes.
        gather_kernel_buffer_threshold: Number of buffers from which a kernel on the GPU gathers the
            inputs. 0: never. Only for TensorRT.
        eager_batching: Whether the next batch is prepared while the model runs; batches may be
            smaller. Only for TensorRT.
    """

    class Graph(TypedMessage):
        """The graph optimization level.

        Args:
            level: 0 is the framework's default. For ONNX Runtime: -1 for basic, 1 for basic and
                extended, 2 for no optimizations; 0 enables all.
        """

        level: int = 0

    class Cuda(TypedMessage):
        """CUDA graphs and streams.

        Args:
            graphs: Whether kernels are launched as CUDA graphs.
            busy_wait_events: Whether a CPU thread waits actively for the GPU: lower latency, higher
                CPU load.
            graph_spec: Shapes to capture. Empty: Triton chooses them from the configuration.
            output_copy_stream: Whether outputs are copied on a stream of their own. It needs twice
                the GPU memory for tensors.
        """

        class GraphSpec(TypedMessage):
            """Shapes for which a CUDA graph is captured.

            Args:
                batch_size: Batch size of the graph, from 1 to ``max_batch_size``; 0 if the model
                    has no batching.
                input: Shape of each input by its name.
                graph_lower_bound: Smallest shapes that use the graph too. Values between the shapes
                    are not initialized. Default: only the exact shapes.
            """

            class Shape(TypedMessage):
                """One input's shape, without the batch axis.

                Args:
                    dim: The sizes.
                """

                dim: Sequence[int] = ()

            class LowerBound(TypedMessage):
                """The smallest shapes that the graph can run.

                Args:
                    batch_size: Smallest batch size, from 1; 0 if the model has no batching.
                    input: Smallest shape of each input by its name.
                """

                batch_size: int = 0
                input: Mapping[str, ModelOptimizationPolicy.Cuda.GraphSpec.Shape] = field(
                    default_factory=dict
                )

            batch_size: int = 0
            input: Mapping[str, Shape] = field(default_factory=dict)
            graph_lower_bound: LowerBound | None = None

        graphs: bool = False
        busy_wait_events: bool = False
        graph_spec: Sequence[GraphSpec] = ()
        output_copy_stream: bool = False

    class ExecutionAccelerators(TypedMessage):
        """Accelerators by name, in the order in which they are tried.

        Args:
            gpu_execution_accelerator: Accelerators of instances on a GPU, such as ``tensorrt``.
            cpu_execution_accelerator: Accelerators of instances on the CPU, such as ``openvino``.
        """

        class Accelerator(TypedMessage):
            """An accelerator.

            Args:
                name: Name of the accelerator, such as ``"tensorrt"`` or ``"openvino"``.
                parameters: Its options, as the backend documents them, such as ``{"precision_mode":
                    "FP16"}``.
            """

            name: str = ""
            parameters: Mapping[str, str] = field(default_factory=dict)

        gpu_execution_accelerator: Sequence[Accelerator] = ()
        cpu_execution_accelerator: Sequence[Accelerator] = ()

    class PinnedMemoryBuffer(TypedMessage):
        """Whether tensors use pinned memory.

        Args:
            enable: ``True`` to use it. Without a ``PinnedMemoryBuffer`` it is used.
        """

        enable: bool = False

    graph: Graph | None = None
    priority: Literal["PRIORITY_DEFAULT", "PRIORITY_MAX", "PRIORITY_MIN"] = "PRIORITY_DEFAULT"
    cuda: Cuda | None = None
    execution_accelerators: ExecutionAccelerators | None = None
    input_pinned_memory: PinnedMemoryBuffer | None = None
    output_pinned_memory: PinnedMemoryBuffer | None = None
    gather_kernel_buffer_threshold: int = 0
    eager_batching: bool = False
