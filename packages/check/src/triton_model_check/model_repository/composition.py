"""Which models of a repository need which others: steps of ensembles,
and models that a model calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import did_you_mean, quoted
from constructs_triton_core.tokens import is_lookup_dummy, is_token
from triton_model_check.model.backends import infer_backend
from triton_model_check.model.folder import ModelFolder

if TYPE_CHECKING:
    from triton_model_check.model.python_calls import ModelCalls

__all__ = ["CompositionOptions"]

DESCRIPTION_FILE = "triton-models.toml"
"""The file in which a user declares the same for the app and the commands."""
ALL_MODELS = "*"
"""Stands for all models of the Python backend in ``python_environments`` of the file."""


@dataclass(frozen=True, slots=True)
class CompositionOptions:
    """What the user declares about the models of a repository.

    ``calls`` are the models that a model calls, by the caller. ``also_served`` are models that are
    needed by others and are served by themselves too.
    """

    calls: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    also_served: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, calls: Mapping[str, Sequence[str]] | None = None, also_served: Sequence[str] = ()
    ) -> CompositionOptions:
        """Return the options with sequences as tuples."""
        if calls is not None and not isinstance(calls, Mapping):
            raise InvalidValueError(
                "calls: must be a mapping of callers to lists of models, got another type; write "
                'for example {"router": ["detector"]}'
            )
        for caller, called in (calls or {}).items():
            _refuse_string(f'calls["{caller}"]', called)
        _refuse_string("also_served", also_served)
        known_calls = {
            caller: _known_names(called)
            for caller, called in (calls or {}).items()
            if not is_lookup_dummy(caller)
        }
        return cls(known_calls, _known_names(also_served))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is declared."""
        return not (self.calls or self.also_served)

    def refuse_unknown(self, models: Iterable[str]) -> None:
        """Check that callers and models to serve alone exist;
        a check reports called models that do not.
        """
        known = list(models)
        for keyword, names in (
            ("calls (--called-models)", self.calls),
            ("also_served", self.also_served),
        ):
            for name in names:
                if name not in known:
                    hint = did_you_mean(name, known, f"its models are {quoted(known)}")
                    raise InvalidValueError(
                        f'{keyword}: the repository has no model of that name, got "{name}"; {hint}'
                    )


def _known_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names without those that the CDK looks up for the next synthesis."""
    return tuple(name for name in names if not is_lookup_dummy(name))


def _refuse_string(keyword: str, names: object) -> None:
    """Raise ``InvalidValueError`` unless the value is a list of known names."""
    if not isinstance(names, Sequence) or any(map(_is_known_later, [names, *names])):
        raise InvalidValueError(
            f"{keyword}: must be a list of the names of models, which are known at synth; write "
            'for example ["detector"]'
        )
    if isinstance(names, str):
        raise InvalidValueError(
            f'{keyword}: must be a list of models, got "{names}"; write ["{names}"]'
        )


def _is_known_later(name: object) -> bool:
    return is_token(name) and not is_lookup_dummy(name)


def _may_call(folder: ModelFolder) -> bool:
    """Whether a model can call others: one of the Python backend can."""
    config = folder.config
    is_python = config is None or config.backend in ("", "python")
    return is_python and infer_backend(folder).backend == "python"


class Composition:
    """The models of a repository and what each of them needs."""

    def __init__(self, models: Mapping[str, ModelFolder], options: CompositionOptions) -> None:
        self._models = models
        self._options = options

    @cached_property
    def calls(self) -> Mapping[str, ModelCalls]:
        """The calls of each model that calls others."""
        declared = self._options.calls
        callers = {
            name: each for name, each in self._models.items() if name in declared or _may_call(each)
        }
        if not callers:
            return {}
        from triton_model_check.model.python_calls import find_calls

        found = {name: find_calls(folder, declared.get(name)) for name, folder in callers.items()}
        return {name: calls for name, calls in found.items() if calls.models or calls.unknown}

    def closure(self, names: Iterable[str], *, with_calls: bool = True) -> list[str]:
        """Return models with all models that they need, at any depth, in alphabetical order.

        Without calls, only the steps of ensembles are needed.
        """
        return sorted(self._reach(names, with_calls=with_calls))

    def loaded_by_name(self, name: str) -> list[str]:
        """Return the models that a server must load besides ``name``: those that are called.

        Triton loads the steps of an ensemble together with it, but not the models that a model
        calls.
        """
        reached = self._reach([name], with_calls=True)
        called = {
            each for caller in reached & set(self.calls) for each in self.calls[caller].models
        }
        return sorted((called & reached) - self._reach([name], with_calls=False))

    def top_level(self) -> list[str]:
        """Return the models that no other model needs, and those to serve alone,
        in alphabetical order.
        """
        needed: set[str] = set()
        for name, folder in self._models.items():
            needed.update(step for step in folder.step_models if step != name)
        for caller in self.calls:
            needed.update(self._called_only(caller))
        served = self._options.also_served
        return [name for name in self._models if name not in needed or name in served]

    def _called_only(self, name: str) -> Iterator[str]:
        """Yield the models that a model calls and that do not need it themselves."""
        for called in self.calls[name].models:
            if name not in self._reach([called], with_calls=True):
                yield called

    def _reach(self, names: Iterable[str], *, with_calls: bool) -> set[str]:
        """Return these models, and those that they need."""
        reached: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in self._models and name not in reached:
                reached.add(name)
                waiting.extend(self._models[name].step_models)
                if with_calls and name in self.calls:
                    waiting.extend(self.calls[name].models)
        return reached
