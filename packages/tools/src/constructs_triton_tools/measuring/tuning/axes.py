"""The order in which candidates are tried: one setting after the other, then pairs of settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from constructs_triton_tools.measuring.tuning.candidates import (
    Candidate,
    ModelSettings,
    SearchSpace,
)
from constructs_triton_tools.measuring.tuning.racing import Outcome, Race

_MISSES = 2
_PASSES = 2
_ENDS_AXIS = (Outcome.WRONG, Outcome.REFUSED)


def search(
    race: Race, spaces: Mapping[str, SearchSpace], order: Callable[[], Sequence[str]] | None = None
) -> None:
    """Search the settings of each model, and of several models a second time.

    ``order`` returns the models before each pass, the longest queue first. Default: those of
    ``spaces``.
    """
    for _ in range(_PASSES if len(spaces) > 1 else 1):
        before = race.best
        for model in order() if order else spaces:
            _ModelSearch(race, model, spaces[model]).run()
        if race.best == before:
            return


def count_candidates(present: Candidate, spaces: Mapping[str, SearchSpace]) -> int:
    """Return how many candidates a search usually tries at most,
    the present configuration included.
    """
    return 1 + sum(_count(present[model], space) for model, space in spaces.items())


def _count(present: ModelSettings, space: SearchSpace) -> int:
    """Return how many changes of one model are tried at most."""
    batches = sum(1 for _ in _doubled(present.batch, space.most_batch, space.least_batch))
    instances = sum(1 for _ in _doubled(present.instances, space.most_instances))
    values = sum(len(values) for _, values in space.parameters)
    others = 2 * ((space.most_instances > 1) + (space.most_batch > 1))
    pairs = len(space.instance_parameters) + 2 * values
    return batches + min(instances, _MISSES) + others + pairs + len(space.delays_microseconds)


def _doubled(value: int, most: int, least: int = 1) -> Iterator[int]:
    """Yield twice the value, four times and so on, from ``least`` up to ``most``."""
    while (value := max(2 * value, least)) <= most:
        yield value


def _halved(value: int) -> Iterator[int]:
    """Yield half of the value, a quarter and so on, down to 1."""
    while (value := value // 2) >= 1:
        yield value


@dataclass(slots=True)
class _ModelSearch:
    """The search in the settings of one model; the other models keep the best settings so far."""

    race: Race
    model: str
    space: SearchSpace

    @property
    def best(self) -> ModelSettings:
        return self.race.best[self.model]

    def run(self) -> None:
        """Try batches, instances, parameters, pairs of them, the best without each, and delays."""
        if self.space.most_batch > 1:
            self._walk("batch", self.space.most_batch, self.space.least_batch)
        self._walk("instances", self.space.most_instances)
        self._try_parameters()
        self._try_neighbours()
        self._try_without()
        if self.best.batch > 1:
            self._try_delays()

    def _try(self, settings: ModelSettings) -> Outcome:
        if settings.batch == 1:
            settings = replace(settings, delay_microseconds=0)
        if settings == self.best or not self.space.contains(settings):
            return Outcome.BELOW
        return self.race.challenge(self.race.best.with_settings(self.model, settings), self.model)

    def _walk(self, name: str, most: int, least: int = 1) -> None:
        """Double a setting until two misses. If doubling never won, halve it."""
        start = getattr(self.best, name)
        self._step_along(name, _doubled(start, most, least))
        if getattr(self.best, name) == start:
            self._step_along(name, _halved(start))

    def _step_along(self, name: str, values: Iterator[int]) -> None:
        misses = 0
        for value in values:
            changed: dict[str, Any] = {name: value}
            if name == "batch":
                changed["delay_microseconds"] = 0
            changed_settings = replace(self.best, **changed)
            if not self.space.contains(changed_settings):
                continue
            outcome = self._try(changed_settings)
            misses = 0 if outcome is Outcome.BEST else misses + 1
            if misses == _MISSES or outcome in _ENDS_AXIS:
                return

    def _try_parameters(self) -> None:
        """Try each value, also with more instances: threads and instances share the CPUs."""
        for instances, name, value in self.space.instance_parameters:
            self._try(replace(self.best, instances=instances).with_parameter(name, value))
        for name, values in self.space.parameters:
            for value in values:
                self._try(self.best.with_parameter(name, value))
                doubled = replace(self.best, instances=2 * self.best.instances)
                self._try(doubled.with_parameter(name, value))

    def _try_neighbours(self) -> None:
        """Try half the batch with twice the instances, and the reverse."""
        best = self.best
        half = max(1, best.batch // 2)
        self._try(replace(best, batch=half, instances=2 * best.instances))
        self._try(replace(best, batch=2 * best.batch, instances=best.instances // 2))

    def _try_without(self) -> None:
        """Try the best settings without each change: it may have won by luck."""
        present = self.race.present[self.model]
        resets: tuple[dict[str, Any], ...] = (
            {"batch": present.batch, "delay_microseconds": present.delay_microseconds},
            {"instances": present.instances},
        )
        for changes in resets:
            self._try(replace(self.best, **changes))

    def _try_delays(self) -> None:
        for delay in self.space.delays_microseconds:
            if self._try(replace(self.best, delay_microseconds=delay)) in _ENDS_AXIS:
                return
