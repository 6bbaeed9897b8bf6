"""``calls`` and ``also_served``, as they are declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import did_you_mean, quoted


@dataclass(frozen=True, slots=True)
class CompositionOptions:
    """What the user declares about the models of a repository.

    ``calls`` are the models that a model calls, by the caller. ``also_served`` are models that are needed by
    others and are served by themselves too.
    """

    calls: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    also_served: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, calls: Mapping[str, Sequence[str]] | None = None, also_served: Sequence[str] = ()
    ) -> CompositionOptions:
        """Return the options with sequences as tuples.

        Raises:
            InvalidValueError: a wrong type.
        """
        for caller, called in (calls or {}).items():
            _refuse_string(f'calls["{caller}"]', called)
        _refuse_string("also_served", also_served)
        return cls({caller: tuple(called) for caller, called in (calls or {}).items()}, tuple(also_served))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is declared."""
        return not (self.calls or self.also_served)

    def refuse_unknown(self, models: Iterable[str]) -> None:
        """Check that callers and models to serve alone exist; a check reports called models that do not."""
        known = list(models)
        for keyword, names in (("calls (--called-models)", self.calls), ("also_served", self.also_served)):
            for name in names:
                if name not in known:
                    hint = did_you_mean(name, known, f"its models are {quoted(known)}")
                    raise InvalidValueError(
                        f'{keyword}: the repository has no model of that name, got "{name}"; {hint}'
                    )


def _refuse_string(keyword: str, names: object) -> None:
    if isinstance(names, str):
        raise InvalidValueError(f'{keyword}: must be a list of models, got "{names}"; write ["{names}"]')
