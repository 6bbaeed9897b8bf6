"""Versions, warmup, response cache, repository agents and metrics of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from triton_model_check.builder.tensors import DataType
from triton_model_check.builder.typed_message import TypedMessage


class ModelVersionPolicy(TypedMessage):
    """Which versions are served; set at most one field. The default is the newest version.

    Args:
        latest: Serve the newest versions.
        all: Serve all versions.
        specific: Serve the named versions.
    """

    class Latest(TypedMessage):
        """The newest versions.

        Args:
            num_versions: How many versions. 0 means 1.
        """

        num_versions: int = 0

    class All(TypedMessage):
        """Every existing version."""

    class Specific(TypedMessage):
        """The named versions.

        Args:
            versions: Numbers of the versions; those that do not exist are ignored.
        """

        versions: Sequence[int] = ()

    latest: Latest | None = None
    all: All | None = None
    specific: Specific | None = None


class ModelWarmup(TypedMessage):
    """A request that Triton runs before the model is ready.

    Args:
        name: Name of the request in the log.
        batch_size: Number of elements in the batch; 1 for a model without batching. 0: the request
            is skipped.
        inputs: Every input that is not optional, by name.
        count: Number of runs. 0 means 1.
    """

    class Input(TypedMessage):
        """One input's value; exactly one of the last three fields is set.

        Args:
            data_type: Element type, that of the input.
            dims: Sizes without the batch axis, and without ``-1``.
            zero_data: Set it, to any value, for zeros.
            random_data: Set it, to any value, for random numbers; strings are empty.
            input_data_file: File in the folder ``warmup`` with the raw values in row-major order.
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
    """Whether a request may have any number of responses; SageMaker serves only one.

    Args:
        decoupled: Whether the model may send no, one or several responses to a request.
    """

    decoupled: bool = False


class ModelResponseCache(TypedMessage):
    """Whether Triton returns responses from its cache, if the server has one.

    Args:
        enable: Whether an identical request gets the cached response.
    """

    enable: bool = False


class ModelOperations(TypedMessage):
    """Shared libraries with a framework's custom operations, loaded before the model.

    Args:
        op_library_filename: Paths of the libraries, for ONNX models.
    """

    op_library_filename: Sequence[str] = ()


class ModelRepositoryAgents(TypedMessage):
    """Agents that may change the model's files before it is loaded.

    Args:
        agents: The agents, in the order in which they run.
    """

    class Agent(TypedMessage):
        """An agent that is installed on the server.

        Args:
            name: Name of the agent, such as ``"checksum"``.
            parameters: Options of the agent.
        """

        name: str = ""
        parameters: Mapping[str, str] = field(default_factory=dict)

    agents: Sequence[Agent] = ()


class ModelMetrics(TypedMessage):
    """Options of the metrics of the model.

    Args:
        metric_control: Options, one entry for each family of metrics. Other families keep their
            defaults.
    """

    class MetricControl(TypedMessage):
        """Options of one family of metrics.

        Args:
            metric_identifier: The family.
            histogram_options: Buckets of a histogram. Default: the server's.
        """

        class MetricIdentifier(TypedMessage):
            """A family of metrics.

            Args:
                family: Name of the family, such as ``"nv_inference_first_response_histogram_ms"``.
            """

            family: str = ""

        class HistogramOptions(TypedMessage):
            """Buckets of a histogram.

            Args:
                buckets: Upper bounds, ascending, in the unit of the metric. Triton adds the bucket
                    above the last one.
            """

            buckets: Sequence[float] = ()

        metric_identifier: MetricIdentifier | None = None
        histogram_options: HistogramOptions | None = None

    metric_control: Sequence[MetricControl] = ()
