"""Optimizations of the server and the backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal

from constructs_triton.model_config.builder.typed_message import TypedMessage

__all__ = ["ModelOptimizationPolicy"]


class ModelOptimizationPolicy(TypedMessage):
    """Graph optimization, execution accelerators, CUDA graphs and pinned memory."""

    class Graph(TypedMessage):
        """The graph optimization level; the backend defines the numbers."""

        level: int = 0

    class Cuda(TypedMessage):
        """CUDA graphs and streams."""

        class GraphSpec(TypedMessage):
            """Shapes for which a CUDA graph is captured."""

            class Shape(TypedMessage):
                """One input's shape, without the batch axis."""

                dim: Sequence[int] = ()

            class LowerBound(TypedMessage):
                """The smallest shapes that the graph can run."""

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
        """Accelerators by name, in the order in which they are tried."""

        class Accelerator(TypedMessage):
            """An accelerator such as ``tensorrt`` or ``openvino`` with its parameters."""

            name: str = ""
            parameters: Mapping[str, str] = field(default_factory=dict)

        gpu_execution_accelerator: Sequence[Accelerator] = ()
        cpu_execution_accelerator: Sequence[Accelerator] = ()

    class PinnedMemoryBuffer(TypedMessage):
        """Whether tensors use pinned memory (default: yes)."""

        enable: bool = False

    graph: Graph | None = None
    priority: Literal["PRIORITY_DEFAULT", "PRIORITY_MAX", "PRIORITY_MIN"] = "PRIORITY_DEFAULT"
    cuda: Cuda | None = None
    execution_accelerators: ExecutionAccelerators | None = None
    input_pinned_memory: PinnedMemoryBuffer | None = None
    output_pinned_memory: PinnedMemoryBuffer | None = None
    gather_kernel_buffer_threshold: int = 0
    eager_batching: bool = False
