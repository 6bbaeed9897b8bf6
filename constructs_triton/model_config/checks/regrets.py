"""What the server accepts and its user regrets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from constructs_triton.findings import Severity
from constructs_triton.model_config.checks.tensors import title
from constructs_triton.model_config.model_under_check import ModelUnderCheck
from constructs_triton.model_config.rules import Problem, rule

__all__: list[str] = []

_OBSERVED = "observed with triton server 2.51"


@rule("tensor-duplicate-input", refuses=False, source=_OBSERVED, hint="rename one of them")
def duplicate_input(subject: ModelUnderCheck) -> Iterator[Problem]:
    """A model declares each input once.

    Two of one name load, and then no request has the right number of inputs.
    """
    if subject.model.is_ensemble:
        return
    names = [tensor.name for tensor in subject.config.input]
    for name, count in Counter(names).items():
        if name and count > 1:
            second = names.index(name, names.index(name) + 1)
            yield Problem(f'input "{name}" is declared {count} times', ("input", second))


@rule("tensor-duplicate-output", severity=Severity.WARNING, source=_OBSERVED, hint="rename one of them")
def duplicate_output(subject: ModelUnderCheck) -> Iterator[Problem]:
    """A model declares each output once.

    Of two the last counts.
    """
    if subject.model.is_ensemble:
        return
    names = [tensor.name for tensor in subject.config.output]
    for name, count in Counter(names).items():
        if name and count > 1:
            second = names.index(name, names.index(name) + 1)
            yield Problem(f'output "{name}" is declared {count} times', ("output", second))


@rule(
    "python-no-tensors",
    "model",
    refuses=False,
    source=_OBSERVED,
    hint="declare input and output, or add auto_complete_config to the model",
    needs_files=True,
)
def no_tensors(subject: ModelUnderCheck) -> Iterator[Problem]:
    """A Python model has inputs and outputs: from ``config.pbtxt``, or from ``auto_complete_config``.

    With neither it loads, ``/ping`` is fine, and every request is refused. An empty, missing or misnamed
    ``config.pbtxt`` ends here.
    """
    config = subject.config
    if subject.model.config_fault is not None or subject.backend != "python" or subject.completes_tensors:
        return
    if config is None or not (config.input or config.output):
        message = "the model has no input and no output"
        yield Problem(message if config is not None else f"{message}, and no config.pbtxt")


@rule(
    "tensor-missing",
    severity=Severity.WARNING,
    source=_OBSERVED,
    hint="declare what is missing",
    needs_files=True,
)
def one_sided(subject: ModelUnderCheck) -> Iterator[Problem]:
    """A Python model or an ensemble has both inputs and outputs.

    The server loads it without either.
    """
    config = subject.config
    if subject.completes_tensors or bool(config.input) == bool(config.output):
        return
    yield Problem(
        f"the model has no {'output' if config.input else 'input'}",
        ("input",) if config.input else ("output",),
    )


@rule(
    "tensor-data-type-number", refuses=False, source=_OBSERVED, hint="write the name, for example TYPE_FP32"
)
def enum_number(subject: ModelUnderCheck) -> Iterator[Problem]:
    """A data type given by number is one of the schema's.

    Any number parses and loads; requests then cannot be formed.
    """
    for field, index, tensor in subject.tensors:
        if tensor.data_type not in range(15):
            message = f"{title(field, index, tensor)}: no such data type, got {tensor.data_type}"
            yield Problem(message, (field, index, "data_type"))


@rule(
    "tensor-batch-axis",
    severity=Severity.WARNING,
    source="triton model configuration documentation: max_batch_size",
    hint="remove the first dim; Triton adds the batch axis",
)
def batch_axis(subject: ModelUnderCheck) -> Iterator[Problem]:
    """The batch axis is not repeated in dims.

    Looked at only where every input and output starts with ``max_batch_size`` itself.
    """
    size = subject.config.max_batch_size
    declared = [tensor for _, _, tensor in subject.tensors]
    if (
        size > 1
        and len(declared) > 1
        and all(len(tensor.dims) > 1 and tensor.dims[0] == size for tensor in declared)
    ):
        field = "input" if subject.config.input else "output"
        yield Problem(
            f"every tensor starts with a dim of {size}, which is max_batch_size", (field, 0, "dims")
        )


@rule(
    "scheduler-priority-default",
    when=("dynamic_batching",),
    severity=Severity.WARNING,
    source="triton core ValidateModelConfig",
    hint="set priority_levels, or remove it",
)
def priority_default(subject: ModelUnderCheck) -> Iterator[Problem]:
    """``default_priority_level`` stands with ``priority_levels``.

    Alone it has no effect.
    """
    batching = subject.config.dynamic_batching
    if batching.default_priority_level and not batching.priority_levels:
        place = ("dynamic_batching", "default_priority_level")
        yield Problem("default_priority_level has no effect without priority_levels", place)


@rule(
    "scheduler-dynamic-batching",
    when=("dynamic_batching",),
    severity=Severity.WARNING,
    source="triton model configuration documentation: dynamic batcher",
    hint="raise max_batch_size, or remove dynamic_batching",
)
def dynamic_batching(subject: ModelUnderCheck) -> Iterator[Problem]:
    """``dynamic_batching`` stands with a ``max_batch_size`` of at least 1.

    Without it no batch is ever formed. Not judged where the backend may raise ``max_batch_size`` itself.
    """
    config = subject.config
    if config.HasField("dynamic_batching") and config.max_batch_size == 0 and not subject.completes_tensors:
        message = "max_batch_size: must be at least 1 when dynamic_batching is set, got 0"
        yield Problem(message, ("dynamic_batching",))


@rule(
    "backend-pytorch-names",
    severity=Severity.WARNING,
    source="triton pytorch_backend, model_instance_state.cc",
    hint="name them INPUT__0, INPUT__1, OUTPUT__0 and so on, in the order of forward()",
)
def pytorch_names(subject: ModelUnderCheck) -> Iterator[Problem]:
    """The tensors of a PyTorch model follow ``name__index`` all together, or not at all.

    Names that do not follow it are taken in the order of the configuration, mixed ones surprisingly so.
    """
    if subject.backend != "pytorch":
        return
    names = [tensor.name for _, _, tensor in subject.tensors]
    following = [name for name in names if name.rpartition("__")[2].isdigit() and "__" in name]
    if following and len(following) < len(names):
        yield Problem(f'only some names follow name__index, such as "{following[0]}"', ("input",))
