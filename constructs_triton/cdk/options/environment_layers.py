"""The environment of a container in layers: the endpoint's, and the variant's over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from constructs_triton.cdk.options.environment import TritonEnvironment
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts.environment import variables

__all__ = ["Environment", "EnvironmentLayers", "flatten"]

Environment = TritonEnvironment | Mapping[str, str]
_SERVER_PING_MODE = "SAGEMAKER_TRITON_PING_MODE"


class EnvironmentLayers(tuple[Environment, ...]):
    """Environments of which each later one replaces variables of the same name."""

    __slots__ = ()

    @classmethod
    def of(cls, *layers: Environment | None) -> EnvironmentLayers:
        """Return the layers that are given."""
        return cls(layer for layer in layers if layer is not None)

    @property
    def is_typed(self) -> bool:
        """Whether every layer is a ``TritonEnvironment``."""
        return all(isinstance(layer, TritonEnvironment) for layer in self)


def flatten(layers: Sequence[Environment]) -> tuple[TritonEnvironment, dict[str, str]]:
    """Return one environment, and variables with a keyword that a mapping sets over it.

    Raises:
        InvalidValueError: a value of a mapping is not a string.
    """
    typed, overrides = TritonEnvironment(), dict[str, str]()
    for layer in layers:
        if isinstance(layer, TritonEnvironment):
            typed = typed.overlaid_with(layer)
            set_again = {row.name for keyword, row in variables().items() if _sets(layer, keyword)}
            overrides = {name: value for name, value in overrides.items() if name not in set_again}
        else:
            others, known = _split(layer)
            typed = replace(typed, extra={**typed.extra, **others})
            overrides |= known
    return typed, overrides


def _sets(environment: TritonEnvironment, keyword: str) -> bool:
    value = getattr(environment, keyword)
    return value is not None and value != ()


def _split(given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the variables without a keyword, and those with one."""
    for name, value in given.items():
        if not isinstance(value, str):
            raise InvalidValueError(
                f'environment["{name}"]: must be a string, got {value!r}; write "{str(value).lower()}"'
            )
    keywords = {row.name for row in variables().values()} | {_SERVER_PING_MODE}
    others = {name: value for name, value in given.items() if name not in keywords}
    return others, {name: value for name, value in given.items() if name in keywords}
