"""Queues, batchers, sequences and the steps of an ensemble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal

from constructs_triton.model_config.builder.tensors import DataType
from constructs_triton.model_config.builder.typed_message import TypedMessage

__all__ = ["ModelDynamicBatching", "ModelEnsembling", "ModelQueuePolicy", "ModelSequenceBatching"]


class ModelQueuePolicy(TypedMessage):
    """How long and how many requests may wait, and what happens after the timeout.

    0 means no timeout and no limit.
    """

    timeout_action: Literal["REJECT", "DELAY"] = "REJECT"
    default_timeout_microseconds: int = 0
    allow_timeout_override: bool = False
    max_queue_size: int = 0


class ModelDynamicBatching(TypedMessage):
    """Triton combines waiting requests into batches; ``ModelDynamicBatching()`` enables it.

    Triton delays a batch for up to ``max_queue_delay_microseconds`` until it reaches one of
    ``preferred_batch_size``.
    """

    preferred_batch_size: Sequence[int] = ()
    max_queue_delay_microseconds: int = 0
    preserve_ordering: bool = False
    priority_levels: int = 0
    default_priority_level: int = 0
    default_queue_policy: ModelQueuePolicy | None = None
    priority_queue_policy: Mapping[int, ModelQueuePolicy] = field(default_factory=dict)


class ModelSequenceBatching(TypedMessage):
    """All requests of a sequence go to one instance, for models that keep state between requests."""

    class StrategyDirect(TypedMessage):
        """Each sequence has its own slot in the batch."""

        max_queue_delay_microseconds: int = 0
        minimum_slot_utilization: float = 0.0

    class StrategyOldest(TypedMessage):
        """Triton forms batches from the oldest sequences."""

        max_candidate_sequences: int = 0
        preferred_batch_size: Sequence[int] = ()
        max_queue_delay_microseconds: int = 0
        preserve_ordering: bool = False

    class Control(TypedMessage):
        """What a control tensor tells the model, and its values for false and true."""

        kind: Literal[
            "CONTROL_SEQUENCE_START",
            "CONTROL_SEQUENCE_READY",
            "CONTROL_SEQUENCE_END",
            "CONTROL_SEQUENCE_CORRID",
        ] = "CONTROL_SEQUENCE_START"
        int32_false_true: Sequence[int] = ()
        fp32_false_true: Sequence[float] = ()
        bool_false_true: Sequence[bool] = ()
        data_type: DataType = "TYPE_INVALID"

    class ControlInput(TypedMessage):
        """A control tensor by its name."""

        name: str = ""
        control: Sequence[ModelSequenceBatching.Control] = ()

    class InitialState(TypedMessage):
        """The state at the start of a sequence: zeros, or a file in the folder ``initial_state``."""

        data_type: DataType = "TYPE_INVALID"
        dims: Sequence[int] = ()
        zero_data: bool | None = None
        data_file: str | None = None
        name: str = ""

    class State(TypedMessage):
        """A state tensor that Triton passes from one request of a sequence to the next."""

        input_name: str = ""
        output_name: str = ""
        data_type: DataType = "TYPE_INVALID"
        dims: Sequence[int] = ()
        initial_state: Sequence[ModelSequenceBatching.InitialState] = ()
        use_same_buffer_for_input_output: bool = False
        use_growable_memory: bool = False

    direct: StrategyDirect | None = None
    oldest: StrategyOldest | None = None
    max_sequence_idle_microseconds: int = 0
    control_input: Sequence[ControlInput] = ()
    state: Sequence[State] = ()
    iterative_sequence: bool = False


class ModelEnsembling(TypedMessage):
    """The steps of an ensemble, as :class:`~constructs_triton.model_config.builder.Ensemble` writes them."""

    class Step(TypedMessage):
        """One model; the maps go from the tensor names of the model to those of the ensemble.

        ``model_version`` -1 is the newest. Left out of a file it is 0, a version that hardly any model has;
        here it is -1 unless said otherwise.
        """

        model_name: str = ""
        model_version: int = -1
        input_map: Mapping[str, str] = field(default_factory=dict)
        output_map: Mapping[str, str] = field(default_factory=dict)
        model_namespace: str = ""

    step: Sequence[Step] = ()
    max_inflight_requests: int = 0
