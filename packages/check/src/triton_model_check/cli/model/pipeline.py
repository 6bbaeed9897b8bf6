"""Connects models of a repository to an ensemble, by the names of their tensors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.checks.loaded_config import complete
from triton_model_check.model_config import Ensemble, ModelConfig
from triton_model_check.model_repository import ModelRepository

_SITE = re.compile(rf"^{re.escape(Path(__file__).name)}:\d+: ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Step:
    """A model, and the ensemble's tensor for each tensor of it that ``--step`` maps."""

    config: ModelConfig
    inputs: dict[str, str]
    outputs: dict[str, str]

    def reads(self) -> Iterator[str]:
        """Yield the ensemble's tensors that the model reads;
        optional inputs only if they are mapped.
        """
        for each in self.config.input:
            if each.name in self.inputs or not each.optional:
                yield self.inputs.get(each.name, each.name)

    def writes(self) -> Iterator[str]:
        """Yield the ensemble's tensors that the model writes."""
        return (self.outputs.get(each.name, each.name) for each in self.config.output)


def pipeline_of(
    name: str, steps: Sequence[str], repository: Path, max_batch_size: int | None
) -> ModelConfig:
    """Return the ensemble of models in ``repository``; ``steps`` are the values of ``--step``.

    An input that no step writes becomes an input of the ensemble, and an output that no step reads
    an output.
    """
    if not steps:
        raise InvalidValueError(
            "--step: an ensemble has at least one step; write --step NAME for each model, such as "
            "--step encoder"
        )
    folders = ModelRepository.from_directory(repository)
    read = [_read_step(text, folders) for text in steps]
    _refuse_two_writers(read)
    if max_batch_size is None:
        _refuse_mixed_batching(read)
    try:
        return _connected(Ensemble(name, max_batch_size=max_batch_size), read).to_config()
    except InvalidValueError as error:
        raise InvalidValueError(_SITE.sub("", str(error))) from None


def _connected(ensemble: Ensemble, steps: Sequence[_Step]) -> Ensemble:
    """Add the steps, the inputs that no step writes, and the outputs that no step reads."""
    reads: list[str] = []
    writes: list[str] = []
    for step in steps:
        ensemble = ensemble.step(step.config, inputs=step.inputs, outputs=step.outputs)
        reads += step.reads()
        writes += step.writes()

    for tensor in dict.fromkeys(reads):
        if tensor not in writes:
            ensemble = ensemble.input(tensor)
    for tensor in dict.fromkeys(writes):
        if tensor not in reads:
            ensemble = ensemble.output(tensor)
    return ensemble


def _read_step(text: str, repository: ModelRepository) -> _Step:
    """Return the step that a value of ``--step`` describes."""
    name, _, maps = text.partition(":")
    config = ModelConfig.from_message(complete(repository.model(name)).config)
    sides = {
        "inputs": [each.name for each in config.input],
        "outputs": [each.name for each in config.output],
    }
    for side, names in sides.items():
        if not names:
            raise InvalidValueError(
                f"--step {name}: its config.pbtxt has no {side}, "
                "which an ensemble needs; write them there"
            )
    step = _Step(config, {}, {})
    for entry in maps.split(",") if maps else ():
        _add_map(step, sides, name, entry)
    return step


def _add_map(step: _Step, sides: dict[str, list[str]], name: str, entry: str) -> None:
    """Add one mapping ``TENSOR=TENSOR`` to a step."""
    tensor, separator, target = (part.strip() for part in entry.partition("="))
    if not tensor or not separator or not target:
        raise InvalidValueError(
            f"--step {name}: must have the form NAME:TENSOR=TENSOR,..., got {entry!r}; write for "
            f"example --step {name}:{sides['inputs'][0]}=text"
        )
    if tensor not in (known := sides["inputs"] + sides["outputs"]):
        hint = did_you_mean(tensor, known, f"its tensors are {quoted(known)}")
        raise InvalidValueError(f'--step {name}: the model has no tensor "{tensor}"; {hint}')
    if tensor in sides["inputs"] and tensor in sides["outputs"]:
        raise InvalidValueError(
            f'--step {name}: "{tensor}" is an input and an output of the model; use the class '
            "Ensemble of triton_model_check.model_config, which maps them separately"
        )
    (step.inputs if tensor in sides["inputs"] else step.outputs)[tensor] = target


def _refuse_two_writers(steps: Sequence[_Step]) -> None:
    """Raise ``InvalidValueError`` if two steps write one tensor."""
    writers: dict[str, str] = {}
    for step in steps:
        for tensor in step.writes():
            name = step.config.name
            if tensor in writers:
                raise InvalidValueError(
                    f'--step: "{writers[tensor]}" and "{name}" both write "{tensor}"; give it '
                    f"another name in one of them, for example --step {name}:{tensor}={tensor}_2"
                )
            writers[tensor] = name


def _refuse_mixed_batching(steps: Sequence[_Step]) -> None:
    sizes = {step.config.name: step.config.max_batch_size for step in steps}
    alone = [name for name, size in sizes.items() if not size]
    if 0 < len(alone) < len(sizes):
        raise InvalidValueError(
            f"--step: {quoted(alone)} cannot batch, and the other models can; add --max-batch-size "
            "0, or set max_batch_size in its config.pbtxt"
        )
