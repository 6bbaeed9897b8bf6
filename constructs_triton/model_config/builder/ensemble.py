"""Ensembles, step by step."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from constructs_triton.errors import InvalidValueError
from constructs_triton.model_config.builder.checking import Refusal, refusals
from constructs_triton.model_config.builder.config import ModelConfig
from constructs_triton.model_config.builder.inference import Declared, batch_size_of, inferred
from constructs_triton.model_config.builder.scheduling import ModelEnsembling
from constructs_triton.model_config.builder.tensors import DataType, ModelInput, ModelOutput
from constructs_triton.model_config.builder.wiring import PlannedStep, Wiring, wire

__all__ = ["Ensemble"]

# What steps still to come may mend; everything else is refused by the call that causes it.
_UNFINISHED = frozenset(
    {
        "ensemble-no-step",
        "ensemble-step-incomplete",
        "ensemble-unused-input",
        "ensemble-unproduced",
        "ensemble-unread",
        "tensor-data-type",
        "tensor-dims",
    }
)


@dataclass(frozen=True)
class _Plan:
    name: str
    max_batch_size: int | None
    inputs: tuple[ModelInput, ...] = ()
    outputs: tuple[ModelOutput, ...] = ()
    steps: tuple[PlannedStep, ...] = ()
    models: tuple[ModelConfig, ...] = ()
    sites: tuple[tuple[str, str, str], ...] = ()


class Ensemble:
    """A pipeline of models that Triton runs as one.

    ::

        Ensemble("digits").input("image").step(preprocess).step(classifier).output("logits").to_config()

    Each call returns a new ensemble and refuses what Triton would refuse, as soon as no later step can mend
    it. An input or output of a step that is not mapped reads or writes the tensor of its own name, where
    that can mean only one. Data types and dims of the ensemble come from the steps, and so does
    ``max_batch_size``: the smallest of the models', where all of them batch or none.

    ``max_batch_size`` must be given where some models batch and others do not: 0, or a size up to the
    smallest.
    """

    def __init__(self, name: str, *, max_batch_size: int | None = None) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidValueError(f"ensemble: must have a name, got {name!r}; name it as its folder")
        if isinstance(max_batch_size, bool) or not isinstance(max_batch_size, int | None):
            raise InvalidValueError(
                f'ensemble "{name}": max_batch_size must be a whole number, got {max_batch_size!r}; '
                "write 0 or more, or leave it out"
            )
        self._plan = _Plan(name, max_batch_size)
        self._refuse(unfinished=True)

    @property
    def name(self) -> str:
        """The name of the ensemble, and of its folder."""
        return self._plan.name

    @property
    def models(self) -> tuple[ModelConfig, ...]:
        """The configurations of all models that the steps name, those of nested ensembles too, each once."""
        return self._plan.models

    def __repr__(self) -> str:
        plan = self._plan
        steps = " -> ".join(step.model_name for step in plan.steps) or "no steps yet"
        return f"Ensemble({plan.name!r}: {steps})"

    # --- building -----------------------------------------------------------------------------------------

    def input(
        self,
        tensor: str | ModelInput,
        *,
        data_type: DataType = "TYPE_INVALID",
        dims: Sequence[int] = (),
    ) -> Ensemble:
        """Add an input; type and dims come from the steps that read it, unless they are given.

        :raises InvalidValueError: where it is there already, or does not fit the steps.
        """
        declared = self._declared(ModelInput, tensor, data_type, dims)
        self._refuse_twice("input", declared.name, self._plan.inputs)
        return self._next("input", declared.name, inputs=(*self._plan.inputs, declared))

    def output(
        self,
        tensor: str | ModelOutput,
        *,
        data_type: DataType = "TYPE_INVALID",
        dims: Sequence[int] = (),
    ) -> Ensemble:
        """Add an output; type and dims come from the step that writes it, unless they are given.

        :raises InvalidValueError: where it is there already, could mean several, or does not fit the steps.
        """
        declared = self._declared(ModelOutput, tensor, data_type, dims)
        self._refuse_twice("output", declared.name, self._plan.outputs)
        return self._next("output", declared.name, outputs=(*self._plan.outputs, declared))

    def step(
        self,
        model: ModelConfig | Ensemble | str,
        *,
        inputs: Mapping[str, str] | None = None,
        outputs: Mapping[str, str] | None = None,
        model_version: int = -1,
        model_namespace: str = "",
    ) -> Ensemble:
        """Add a step; the order of the calls is free.

        ``inputs`` and ``outputs`` go from the model's tensor names to the ensemble's. Of a model that is
        given as a mere name nothing is known, so that all its tensors have to be mapped.

        :raises InvalidValueError: for a tensor that the model does not have, a type, shape or batch size
            that does not fit, a tensor written twice, and whatever else Triton refuses.
        """
        config, below = _model(model)
        step = PlannedStep(
            model_name=str(model) if config is None else config.name,
            config=None if config is None else config.to_message(),
            inputs=_mapping("inputs", inputs),
            outputs=_mapping("outputs", outputs),
            model_version=model_version,
            model_namespace=model_namespace,
            site="",
        )
        models = self._with_models((*below, *(() if config is None else (config,))))
        return self._next("step", str(len(self._plan.steps)), steps=(*self._plan.steps, step), models=models)

    def _declared(
        self, kind: type[Declared], tensor: str | Declared, data_type: DataType, dims: Sequence[int]
    ) -> Declared:
        if isinstance(tensor, str) and tensor:
            return kind(name=tensor, data_type=data_type, dims=dims)
        if isinstance(tensor, kind) and tensor.name and data_type == "TYPE_INVALID" and not dims:
            return tensor
        raise InvalidValueError(
            f'ensemble "{self.name}": give a name, or a {kind.__name__} with a name and nothing beside, '
            f"got {tensor!r}; write data_type and dims into the {kind.__name__}"
        )

    def _with_models(self, added: Iterable[ModelConfig]) -> tuple[ModelConfig, ...]:
        known = {model.name: model for model in self._plan.models}
        for model in added:
            if known.setdefault(model.name, model) != model:
                raise InvalidValueError(
                    f'ensemble "{self.name}": two models are called the same, got {model.name!r} twice; '
                    "rename one of them"
                )
        return tuple(known.values())

    def _refuse_twice(self, kind: str, name: str, declared: Iterable[ModelInput | ModelOutput]) -> None:
        if any(tensor.name == name for tensor in declared):
            raise InvalidValueError(
                f'ensemble "{self.name}": the {kind} is there already, got {name!r} twice; keep one'
            )

    def _next(self, kind: str, key: str, **changes: Any) -> Ensemble:
        following = object.__new__(Ensemble)
        site = (kind, key, _caller())
        following._plan = replace(self._plan, sites=(*self._plan.sites, site), **changes)
        following._refuse(unfinished=True)
        return following

    # --- the configuration --------------------------------------------------------------------------------

    def to_config(self) -> ModelConfig:
        """The configuration of the ensemble, with its steps in the order in which they can run.

        :raises InvalidValueError: with everything that is still missing, and the lines that ask for it.
        """
        self._refuse(unfinished=False)
        return ModelConfig.from_message(self._message(self._wiring.in_order()))

    def _refuse(self, *, unfinished: bool) -> None:
        steps = [model.to_message() for model in self._plan.models]
        found = refusals(self._message(range(len(self._plan.steps))), steps)
        told = [refusal for refusal in found if not (unfinished and refusal.code in _UNFINISHED)]
        if told:
            raise InvalidValueError("\n".join(self._tell(refusal, sited=not unfinished) for refusal in told))

    def _tell(self, refusal: Refusal, *, sited: bool) -> str:
        site = self._site(refusal.field) if sited else ""
        return f'{site}ensemble "{self.name}": {refusal}'

    def _site(self, place: Sequence[str | int]) -> str:
        """The line of Python that declared the input, output or step which a rule points at."""
        kind, _, key = "step", "", ""
        if place[:2] == ("ensemble_scheduling", "step") and len(place) > 2:
            key = str(place[2])
        elif len(place) > 1 and place[0] in ("input", "output"):
            kind = str(place[0])
            key = (self._plan.inputs if kind == "input" else self._plan.outputs)[int(place[1])].name
        return next((f"{line}: " for what, name, line in self._plan.sites if (what, name) == (kind, key)), "")

    @cached_property
    def _wiring(self) -> Wiring:
        plan = self._plan
        try:
            return wire(
                plan.steps,
                tuple(tensor.name for tensor in plan.inputs),
                tuple(tensor.name for tensor in plan.outputs),
            )
        except InvalidValueError as error:
            raise InvalidValueError(f'ensemble "{self.name}": {error}') from None

    def _message(self, order: Iterable[int]) -> Any:
        plan, wiring = self._plan, self._wiring
        size = batch_size_of(plan.name, plan.max_batch_size, plan.steps)
        steps = [
            ModelEnsembling.Step(
                model_name=plan.steps[index].model_name,
                model_version=plan.steps[index].model_version,
                input_map=wiring.input_maps[index],
                output_map=wiring.output_maps[index],
                model_namespace=plan.steps[index].model_namespace,
            )
            for index in order
        ]
        message = ModelEnsembling(step=steps).to_message()
        return _unjudged(
            name=plan.name,
            platform="ensemble",
            max_batch_size=size,
            input=[inferred(tensor, "input", plan.steps, wiring, size) for tensor in plan.inputs],
            output=[inferred(tensor, "output", plan.steps, wiring, size) for tensor in plan.outputs],
            ensemble_scheduling=message,
        )


def _unjudged(*, input: Iterable[Any], output: Iterable[Any], **values: Any) -> Any:
    from constructs_triton.model_config.schema import load_schema  # noqa: PLC0415 - heavy

    return load_schema().ModelConfig(
        input=[tensor.to_message() for tensor in input],
        output=[tensor.to_message() for tensor in output],
        **values,
    )


def _model(model: ModelConfig | Ensemble | str) -> tuple[ModelConfig | None, tuple[ModelConfig, ...]]:
    """The configuration of a step's model, and those of the models below it."""
    if isinstance(model, Ensemble):
        return model.to_config(), model.models
    if isinstance(model, ModelConfig) and model.name:
        return model, ()
    if isinstance(model, str) and model:
        return None, ()
    raise InvalidValueError(
        f"step: must be a model with a name, got {model!r}; give a ModelConfig, an Ensemble or a name"
    )


def _mapping(name: str, entries: Mapping[str, str] | None) -> dict[str, str]:
    if entries is not None and not isinstance(entries, Mapping):
        raise InvalidValueError(
            f"step {name}: must be a mapping, got {entries!r}; write {{model's: ensemble's}}"
        )
    given = dict(entries or {})
    for key, value in given.items():
        if not (isinstance(key, str) and isinstance(value, str) and key and value):
            raise InvalidValueError(
                f"step {name}: must go from a tensor of the model to one of the ensemble, "
                f"got {{{key!r}: {value!r}}}; write both as text"
            )
    return given


def _caller() -> str:
    """File and line of the code outside this module that is building the ensemble."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
