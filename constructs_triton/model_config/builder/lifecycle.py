"""Versions, warmup, response cache, repository agents and metrics of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from constructs_triton.model_config.builder.tensors import DataType
from constructs_triton.model_config.builder.typed_message import TypedMessage

__all__ = [
    "ModelMetrics",
    "ModelOperations",
    "ModelRepositoryAgents",
    "ModelResponseCache",
    "ModelTransactionPolicy",
    "ModelVersionPolicy",
    "ModelWarmup",
]


class ModelVersionPolicy(TypedMessage):
    """Which versions are served; the default is the newest."""

    class Latest(TypedMessage):
        """The newest ``num_versions``."""

        num_versions: int = 0

    class All(TypedMessage):
        """Every existing version."""

    class Specific(TypedMessage):
        """Exactly these."""

        versions: Sequence[int] = ()

    latest: Latest | None = None
    all: All | None = None
    specific: Specific | None = None


class ModelWarmup(TypedMessage):
    """A request that Triton runs before the model is ready.

    ``count`` is the number of runs; 0 means one. ``inputs`` contains every input that is not optional.
    """

    class Input(TypedMessage):
        """One input's value: zeros, random numbers, or a file in the folder ``warmup``.

        ``dims`` has neither batch axis nor ``-1``. A choice counts once it is given, ``False`` included.
        """

        data_type: DataType = "TYPE_INVALID"
        dims: Sequence[int] = ()
        zero_data: bool | None = None
        random_data: bool | None = None
        input_data_file: str | None = None

    name: str = ""
    batch_size: int = 0
    inputs: Mapping[str, Input] = field(default_factory=dict)
    count: int = 0


class ModelTransactionPolicy(TypedMessage):
    """Whether a request may have any number of responses; SageMaker serves only one."""

    decoupled: bool = False


class ModelResponseCache(TypedMessage):
    """Whether Triton returns responses from its cache, if the server has one."""

    enable: bool = False


class ModelOperations(TypedMessage):
    """Shared libraries with a framework's custom operations, loaded before the model."""

    op_library_filename: Sequence[str] = ()


class ModelRepositoryAgents(TypedMessage):
    """Agents that may change the model's files before it is loaded."""

    class Agent(TypedMessage):
        """An agent by its name, with its own parameters."""

        name: str = ""
        parameters: Mapping[str, str] = field(default_factory=dict)

    agents: Sequence[Agent] = ()


class ModelMetrics(TypedMessage):
    """Options of the metrics of the model."""

    class MetricControl(TypedMessage):
        """Options of one family of metrics."""

        class MetricIdentifier(TypedMessage):
            """The family by its name."""

            family: str = ""

        class HistogramOptions(TypedMessage):
            """Upper bounds of a histogram's buckets, ascending."""

            buckets: Sequence[float] = ()

        metric_identifier: MetricIdentifier | None = None
        histogram_options: HistogramOptions | None = None

    metric_control: Sequence[MetricControl] = ()
