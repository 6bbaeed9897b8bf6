"""Builds the configuration of an ensemble step by step."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from constructs_triton_core import keywords
from constructs_triton_core.errors import InvalidValueError
from triton_model_check.builder.checking import ConfigProblem, config_problems
from triton_model_check.builder.config import ModelConfig
from triton_model_check.builder.scheduling import ModelEnsembling
from triton_model_check.builder.tensors import DataType, ModelInput, ModelOutput
from triton_model_check.builder.wiring import (
    Declared,
    PlannedStep,
    Wiring,
    batch_size_of,
    inferred,
    wire,
)
from triton_model_check.model_config.schema import message_class

# A later step may fix these; every other error is raised by the call that causes it.
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
class _Draft:
    name: str
    max_batch_size: int | None
    max_inflight_requests: int
    inputs: tuple[ModelInput, ...] = ()
    outputs: tuple[ModelOutput, ...] = ()
    steps: tuple[PlannedStep, ...] = ()
    models: tuple[ModelConfig, ...] = ()
    sites: tuple[tuple[str, str, str], ...] = ()


class Ensemble:
    """A pipeline of models that Triton runs as one.

    ::

        Ensemble("digits").input("image").step(preprocess).step(classifier).output("logits").to_config()

    Each call returns a new ensemble. It raises an error as soon as Triton would reject the ensemble
    and no later step can fix it.

    An input or output of a step that is not mapped reads or writes the tensor of the same name, if
    only one tensor has that name. The steps determine the data types and dims of the ensemble.

    Args:
        name: Name of the ensemble, which is that of its folder.
        max_batch_size: Largest batch. Required if some models have batching and others do not: 0,
            or a size up to the smallest. Default: the smallest value of the models.
        max_inflight_requests: Number of requests that may be in one step at a time, for steps that
            produce responses faster than the next step reads them. Only newer servers have this
            field. Default: no limit.

    Raises:
        InvalidValueError: the name is empty, or a number is not a whole number.
    """

    def __init__(
        self, name: str, *, max_batch_size: int | None = None, max_inflight_requests: int = 0
    ) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidValueError(
                f"ensemble: must have a name, got {name!r}; use the name of its folder"
            )
        if isinstance(max_batch_size, bool) or not isinstance(max_batch_size, int | None):
            raise InvalidValueError(
                f'ensemble "{name}": max_batch_size must be a whole number, got '
                f"{max_batch_size!r}; use a number of 0 or more, or omit it"
            )
        self._draft = _Draft(name, max_batch_size, max_inflight_requests)
        self._raise_for_errors(unfinished=True)

    @property
    def name(self) -> str:
        """The name of the ensemble, and of its folder."""
        return self._draft.name

    @property
    def models(self) -> tuple[ModelConfig, ...]:
        """The configurations of all models of the steps, including those of nested ensembles."""
        return self._draft.models

    def __repr__(self) -> str:
        draft = self._draft
        steps = " -> ".join(step.model_name for step in draft.steps) or "no steps yet"
        return f"Ensemble({draft.name!r}: {steps})"

    # --- building ---------------------------------------------------------------------------------

    def input(
        self,
        tensor: str | ModelInput,
        *,
        data_type: DataType = "TYPE_INVALID",
        dims: Sequence[int] = (),
    ) -> Ensemble:
        """Add an input.

        Args:
            tensor: Name of the input, or the whole declaration.
            data_type: Element type. Default: that of the steps that read it.
            dims: Sizes, as in ``ModelInput``. Default: those of the steps that read it.

        Raises:
            InvalidValueError: the input exists already, or does not match the steps.
        """
        return self._with_tensor("input", ModelInput, self._draft.inputs, tensor, data_type, dims)

    def output(
        self,
        tensor: str | ModelOutput,
        *,
        data_type: DataType = "TYPE_INVALID",
        dims: Sequence[int] = (),
    ) -> Ensemble:
        """Add an output.

        Args:
            tensor: Name of the output, or the whole declaration.
            data_type: Element type. Default: that of the step that writes it.
            dims: Sizes, as in ``ModelOutput``. Default: those of the step that writes it.

        Raises:
            InvalidValueError: the output exists already, is ambiguous, or does not match the steps.
        """
        return self._with_tensor(
            "output", ModelOutput, self._draft.outputs, tensor, data_type, dims
        )

    def step(
        self,
        model: ModelConfig | Ensemble | str,
        *,
        inputs: Mapping[str, str] | None = None,
        outputs: Mapping[str, str] | None = None,
        model_version: int = -1,
    ) -> Ensemble:
        """Add a step; the steps may be added in any order.

        Args:
            model: The model or a nested ensemble. If it is only a name, its tensors are unknown and
                all must be mapped.
            inputs: Tensor of the ensemble by input of the model. Default: the tensors of the same
                names.
            outputs: Tensor of the ensemble by output of the model. Default: the tensors of the same
                names.
            model_version: Version to run; -1 is the newest.

        Raises:
            InvalidValueError: the model has no such tensor; a data type, shape or batch size does
                not match; a tensor is written twice; or Triton would reject the ensemble for
                another reason.
        """
        config, below = _model(model)
        step = PlannedStep(
            model_name=str(model) if config is None else config.name,
            config=None if config is None else config.to_message(),
            inputs=_mapping("inputs", inputs),
            outputs=_mapping("outputs", outputs),
            model_version=model_version,
        )
        models = self._with_models((*below, *(() if config is None else (config,))))
        return self._next(
            "step", str(len(self._draft.steps)), steps=(*self._draft.steps, step), models=models
        )

    def _declared(
        self, kind: type[Declared], tensor: str | Declared, data_type: DataType, dims: Sequence[int]
    ) -> Declared:
        """Return a tensor that is given by its name or as an object."""
        if isinstance(tensor, str) and tensor:
            return kind(name=tensor, data_type=data_type, dims=dims)
        if isinstance(tensor, kind) and tensor.name and data_type == "TYPE_INVALID" and not dims:
            return tensor
        raise InvalidValueError(
            f'ensemble "{self.name}": must be a name, or a {kind.__name__} with a name as only '
            f"argument, got {tensor!r}; set data_type and dims in the {kind.__name__}"
        )

    def _with_models(self, added: Iterable[ModelConfig]) -> tuple[ModelConfig, ...]:
        """Return the models with further ones; two of one name must be equal."""
        known = {model.name: model for model in self._draft.models}
        for model in added:
            if known.setdefault(model.name, model) != model:
                raise InvalidValueError(
                    f'ensemble "{self.name}": two different models have the same name, got '
                    f"{model.name!r}; rename one of them"
                )
        return tuple(known.values())

    def _with_tensor(
        self, side: str, kind: type[Declared], known: tuple[Declared, ...], *given: Any
    ) -> Ensemble:
        """Return the ensemble with another input or output."""
        added = self._declared(kind, *given)
        name = added.name
        if any(tensor.name == name for tensor in known):
            raise InvalidValueError(
                f'ensemble "{self.name}": the {side} exists already, '
                f"got {name!r}; remove the second one"
            )
        return self._next(side, name, **{f"{side}s": (*known, added)})

    def _next(self, kind: str, key: str, **changes: Any) -> Ensemble:
        changed = object.__new__(Ensemble)
        site = (kind, key, _caller())
        changed._draft = replace(self._draft, sites=(*self._draft.sites, site), **changes)
        changed._raise_for_errors(unfinished=True)
        return changed

    # --- the configuration ------------------------------------------------------------------------

    def to_config(self) -> ModelConfig:
        """Return the configuration of the ensemble, with its steps in the order in which they can
        run.

        Raises:
            InvalidValueError: something is missing; the message has every error and its line of
                Python.
        """
        self._raise_for_errors(unfinished=False)
        return ModelConfig.from_message(self._message(self._wiring.in_order()))

    def _raise_for_errors(self, *, unfinished: bool) -> None:
        steps = [model.to_message() for model in self._draft.models]
        found = config_problems(self._message(range(len(self._draft.steps))), steps)
        errors = [problem for problem in found if not (unfinished and problem.code in _UNFINISHED)]
        if errors:
            raise InvalidValueError(
                "\n".join(self._line(error, sited=not unfinished) for error in errors)
            )

    def _line(self, problem: ConfigProblem, *, sited: bool) -> str:
        site = self._site(problem.field) if sited else ""
        return f'{site}ensemble "{self.name}": {problem}'

    def _site(self, place: Sequence[str | int]) -> str:
        """The line of Python that declared the input, output or step of an error."""
        kind, _, key = "step", "", ""
        if place[:2] == ("ensemble_scheduling", "step") and len(place) > 2:
            key = str(place[2])
        elif len(place) > 1 and place[0] in ("input", "output"):
            kind = str(place[0])
            key = (self._draft.inputs if kind == "input" else self._draft.outputs)[
                int(place[1])
            ].name
        return next(
            (f"{line}: " for what, name, line in self._draft.sites if (what, name) == (kind, key)),
            "",
        )

    @cached_property
    def _wiring(self) -> Wiring:
        """Connect the steps by the names of their tensors."""
        draft = self._draft
        try:
            return wire(
                draft.steps,
                tuple(tensor.name for tensor in draft.inputs),
                tuple(tensor.name for tensor in draft.outputs),
            )
        except InvalidValueError as error:
            raise InvalidValueError(f'ensemble "{self.name}": {error}') from None

    def _message(self, order: Iterable[int]) -> Any:
        """Return the configuration with the steps in this order."""
        draft, wiring = self._draft, self._wiring
        size = batch_size_of(draft.name, draft.max_batch_size, draft.steps)
        steps = [
            ModelEnsembling.Step(
                model_name=draft.steps[index].model_name,
                model_version=draft.steps[index].model_version,
                input_map=wiring.input_maps[index],
                output_map=wiring.output_maps[index],
            )
            for index in order
        ]
        limit = draft.max_inflight_requests
        message = ModelEnsembling(step=steps, max_inflight_requests=limit).to_message()
        inputs = (inferred(tensor, "input", draft.steps, wiring, size) for tensor in draft.inputs)
        outputs = (
            inferred(tensor, "output", draft.steps, wiring, size) for tensor in draft.outputs
        )
        return message_class("ModelConfig")(
            name=draft.name,
            platform="ensemble",
            max_batch_size=size,
            input=[tensor.to_message() for tensor in inputs],
            output=[tensor.to_message() for tensor in outputs],
            ensemble_scheduling=message,
        )


def _model(
    model: ModelConfig | Ensemble | str,
) -> tuple[ModelConfig | None, tuple[ModelConfig, ...]]:
    """The configuration of a step's model, and those of the models in it."""
    if isinstance(model, Ensemble):
        return model.to_config(), model.models
    if isinstance(model, ModelConfig) and model.name:
        return model, ()
    if isinstance(model, str) and model:
        return None, ()
    raise InvalidValueError(
        f"step: must be a model with a name, got {model!r}; "
        "pass a ModelConfig, an Ensemble or a name"
    )


def _mapping(name: str, entries: Mapping[str, str] | None) -> dict[str, str]:
    """Return a checked mapping from tensors of a model to those of the ensemble."""
    if entries is not None and not isinstance(entries, Mapping):
        raise InvalidValueError(
            f"step {name}: must be a mapping, got {entries!r}; "
            'write {"tensor of the model": "tensor of the ensemble"}'
        )
    given = dict(entries or {})
    for key, value in given.items():
        if not (isinstance(key, str) and isinstance(value, str) and key and value):
            raise InvalidValueError(
                f"step {name}: must map a tensor of the model to a tensor of the ensemble, "
                f"got {{{key!r}: {value!r}}}; write both names as strings"
            )
    return given


def _caller() -> str:
    """File and line of the code outside this module that builds the ensemble."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in (__file__, keywords.__file__):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
