"""Queues, batchers, sequences and the steps of an ensemble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal

from triton_model_check.builder.tensors import DataType
from triton_model_check.builder.typed_message import TypedMessage


class ModelQueuePolicy(TypedMessage):
    """How many requests may wait, how long, and what happens after the timeout.

    Args:
        timeout_action: ``"REJECT"`` returns an error. ``"DELAY"`` runs the request after all others
            that have not timed out.
        default_timeout_microseconds: Longest time in the queue, in microseconds. 0: no limit.
        allow_timeout_override: Whether a request may set a shorter timeout.
        max_queue_size: Number of requests that may wait; others are rejected immediately. 0: no
            limit.
    """

    timeout_action: Literal["REJECT", "DELAY"] = "REJECT"
    default_timeout_microseconds: int = 0
    allow_timeout_override: bool = False
    max_queue_size: int = 0


class ModelDynamicBatching(TypedMessage):
    """Triton combines waiting requests into batches; ``ModelDynamicBatching()`` enables it.

    Args:
        preferred_batch_size: Batch sizes that run without further delay, each at most
            ``max_batch_size``. Empty: Triton runs what waits, up to ``max_batch_size``, when the
            delay is over.
        max_queue_delay_microseconds: How long a request waits for others to fill the batch, in
            microseconds. 0: not at all.
        preserve_ordering: Whether responses have the order of their requests.
        priority_levels: Number of priority levels; 1 is the highest level. 0: no priorities.
        default_priority_level: Level of requests that name none. Required if ``priority_levels`` is
            above 0.
        default_queue_policy: Limits of the queue. Default: no limits.
        priority_queue_policy: Limits of single priority levels, by level, instead of
            ``default_queue_policy``.
    """

    preferred_batch_size: Sequence[int] = ()
    max_queue_delay_microseconds: int = 0
    preserve_ordering: bool = False
    priority_levels: int = 0
    default_priority_level: int = 0
    default_queue_policy: ModelQueuePolicy | None = None
    priority_queue_policy: Mapping[int, ModelQueuePolicy] = field(default_factory=dict)


class ModelSequenceBatching(TypedMessage):
    """All requests of a sequence go to one instance, for models that keep state between requests.

    Args:
        direct: Settings if each sequence has its own slot in the batch. It is the strategy if
            ``oldest`` is not set.
        oldest: Settings if batches are formed from the oldest sequences; not together with
            ``direct``.
        max_sequence_idle_microseconds: Time without a request after which a sequence ends, in
            microseconds. 0: one second.
        control_input: Inputs that Triton adds, which mark the start, the end and the id of a
            sequence.
        state: Tensors that Triton keeps between the requests of a sequence.
        iterative_sequence: Whether the model reschedules a single request until it is complete. The
            backend must support it.
    """

    class StrategyDirect(TypedMessage):
        """Each sequence has its own slot in the batch.

        Args:
            max_queue_delay_microseconds: How long a request waits for others, in microseconds. It
                has no effect while ``minimum_slot_utilization`` is 0.
            minimum_slot_utilization: Fraction of the slots, 0 to 1, that must be ready before the
                delay is over. 0: one slot is enough.
        """

        max_queue_delay_microseconds: int = 0
        minimum_slot_utilization: float = 0.0

    class StrategyOldest(TypedMessage):
        """Triton forms batches from the oldest sequences.

        Args:
            max_candidate_sequences: Number of sequences that are active at a time; others wait.
            preferred_batch_size: Batch sizes that run without further delay, each at most
                ``max_batch_size``.
            max_queue_delay_microseconds: How long a request waits for others, in microseconds.
            preserve_ordering: Whether responses have the order of their requests.
        """

        max_candidate_sequences: int = 0
        preferred_batch_size: Sequence[int] = ()
        max_queue_delay_microseconds: int = 0
        preserve_ordering: bool = False

    class Control(TypedMessage):
        """What a control tensor tells the model.

        Args:
            kind: Whether the sequence starts, is ready or ends, or the id of the sequence
                (``CONTROL_SEQUENCE_CORRID``).
            int32_false_true: The two values of an INT32 tensor: for false, then for true. Set
                exactly one of the three.
            fp32_false_true: The two values of an FP32 tensor: for false, then for true.
            bool_false_true: The two values of a BOOL tensor: for false, then for true.
            data_type: Element type of the id: a 32-bit or 64-bit integer, or ``"TYPE_STRING"``.
                Only for ``CONTROL_SEQUENCE_CORRID``.
        """

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
        """A control tensor.

        Args:
            name: Name of the model's input.
            control: What the tensor contains.
        """

        name: str = ""
        control: Sequence[ModelSequenceBatching.Control] = ()

    class InitialState(TypedMessage):
        """The state at the start of a sequence.

        Args:
            data_type: Element type, that of the state.
            dims: Sizes without the batch axis; all of them fixed.
            zero_data: Set it, to any value, for zeros.
            data_file: File in the folder ``initial_state`` with the raw values in row-major order;
                instead of ``zero_data``.
            name: Name of the initial state; required.
        """

        data_type: DataType = "TYPE_INVALID"
        dims: Sequence[int] = ()
        zero_data: bool | None = None
        data_file: str | None = None
        name: str = ""

    class State(TypedMessage):
        """A state tensor that Triton passes from one request of a sequence to the next.

        Args:
            input_name: Input of the model that receives the state.
            output_name: Output of the model that returns the next state.
            data_type: Element type of the state.
            dims: Sizes without the batch axis, with ``-1`` for a variable size.
            initial_state: State of the first request, at most one. Without it, the values are
                arbitrary.
            use_same_buffer_for_input_output: Whether input and output share one buffer, which saves
                memory. The model must then read the whole state before it writes.
            use_growable_memory: Whether the buffer can grow without a copy. Only on GPUs, and only
                with ``use_same_buffer_for_input_output``.
        """

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
    """The steps of an ensemble, as :class:`~triton_model_check.builder.Ensemble`
    writes them.

    Args:
        step: The models; Triton derives their order from the tensors.
        max_inflight_requests: Number of requests that may be in one step at a time, for steps that
            produce responses faster than the next step reads them. 0: no limit. Only newer servers
            have this field.
    """

    class Step(TypedMessage):
        """One model of an ensemble.

        Args:
            model_name: Name of the model.
            model_version: Version to run; -1 is the newest. A file that omits it means 0, a version
                that hardly any model has, so -1 is written by default.
            input_map: Name of a tensor of the ensemble by each input of the model.
            output_map: Name of a tensor of the ensemble by each output of the model; outputs may be
                left out.
            model_namespace: Reserved by Triton; leave it empty.
        """

        model_name: str = ""
        model_version: int = -1
        input_map: Mapping[str, str] = field(default_factory=dict)
        output_map: Mapping[str, str] = field(default_factory=dict)
        model_namespace: str = ""

    step: Sequence[Step] = ()
    max_inflight_requests: int = 0
