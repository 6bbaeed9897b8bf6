"""The steps of a load test, and the sentences about their result."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from math import inf
from typing import Any

from constructs_triton_core.program.exit_codes import (
    EXIT_INTERRUPTED,
    EXIT_NOT_DONE,
    EXIT_SUCCESS,
    EXIT_WRONG,
)
from constructs_triton_tools.cli.load_test.progress import Progress, describe_streams, explain_unit
from constructs_triton_tools.cli.load_test.streams import GRACE_SECONDS, read_limits
from constructs_triton_tools.cli.options import chosen_fields
from constructs_triton_tools.measuring.load_test.confidence import least_requests
from constructs_triton_tools.measuring.load_test.prepared_requests import prepare
from constructs_triton_tools.measuring.load_test.search import GENERATOR_WAS_BUSY, HeldSteps, Search
from constructs_triton_tools.measuring.load_test.step import StepResult, StepSettings
from constructs_triton_tools.measuring.load_test.step_runner import StepRunner

_FIRST_RATE = 4
_FIRST_CONCURRENCY = 1
#: Seconds that are left out at the beginning of each later step.
_LEAD_SECONDS = 1.0
_LEAST_REQUESTS = 40
_LONGEST_SECONDS = 60
_SURE = 0.95


class LoadTest:
    """The steps of one test; ``steps`` has those that were finished."""

    def __init__(self, arguments: argparse.Namespace, transport: Any, invocations: Any) -> None:
        self._arguments = arguments
        self.limits = read_limits(arguments)
        self._by_concurrency = arguments.concurrency is not None
        self._loads = arguments.concurrency or arguments.rates or ()
        self._progress = Progress(
            self.limits, quiet=arguments.json, by_concurrency=self._by_concurrency
        )
        prepared = [
            prepare(transport, invocation, weight=weight, is_stream=arguments.stream)
            for weight, invocation in invocations
        ]
        self._runner = StepRunner(
            prepared,
            self.limits,
            processes=arguments.processes,
            show=self._progress.show if sys.stderr.isatty() else None,
        )
        first = _FIRST_CONCURRENCY if self._by_concurrency else _FIRST_RATE
        maximum = inf if arguments.maximum is None else arguments.maximum
        self._search = Search(
            self._measure,
            start=arguments.start or first,
            maximum=maximum,
            is_whole=self._by_concurrency,
        )
        self.steps: list[StepResult] = []
        self.is_interrupted = False
        self.started = datetime.now(UTC)

    @property
    def best(self) -> StepResult | None:
        """The highest rate that was held; with a search, the confirmed one."""
        if not self._loads:
            return self._search.best
        return next(reversed(HeldSteps.of(self.steps).steps), None)

    @property
    def lower_bound_reason(self) -> str:
        """Why the endpoint may hold more than the highest rate that was held;
        empty if it does not.
        """
        return HeldSteps.of(self.steps).lower_bound_reason

    def run(self) -> int:
        """Run all steps and return the exit code."""
        self._progress.print_headings()
        try:
            for step in self._iterate():
                self.steps.append(step)
                self._progress.print_step(step)
        except KeyboardInterrupt:
            self.is_interrupted = True
            return EXIT_INTERRUPTED
        if self.lower_bound_reason == GENERATOR_WAS_BUSY:
            return EXIT_NOT_DONE
        return EXIT_SUCCESS if self.best else EXIT_WRONG

    def _iterate(self) -> Iterator[StepResult]:
        """Measure each load that was given, or else search for the highest one, step by step."""
        if not self._loads:
            yield from self._search.run()
        for rate in self._loads:
            yield self._measure(rate, times=1)

    def _measure(self, rate: float, times: float) -> StepResult:
        return self._runner.measure(rate, self._settings(rate, times))

    def _settings(self, rate: float, times: float) -> StepSettings:
        arguments = self._arguments
        requests = max(_LEAST_REQUESTS, least_requests(self.limits.percentile))
        # With a fixed number of streams, the rate is not known.
        least = 0 if self._by_concurrency else min(requests / rate, _LONGEST_SECONDS)

        settings = {"grace_seconds": GRACE_SECONDS, **chosen_fields(arguments, StepSettings)}
        settings["seconds"] = max(arguments.seconds, round(least, 1)) * times
        if self.steps:
            settings["warm_up_seconds"] = _LEAD_SECONDS
        if not arguments.stream:
            settings["grace_seconds"] = None
        return StepSettings(**settings, by_concurrency=self._by_concurrency)

    def summary(self) -> list[str]:
        """One sentence about the result, and for streams one about what is a token."""
        if self.is_interrupted:
            return ["interrupted: the steps above were measured"]
        best = self.best
        if best is None:
            return [self._nothing_held()]

        reason = self.lower_bound_reason
        why = f", because {reason}; {self._remedy(reason)}" if reason else ""
        at_least = "at least " if reason else ""

        if best.stream is not None:
            return [
                f"{describe_streams(best, self.limits, at_least)}{why}",
                explain_unit(best.stream),
            ]
        return [
            f"highest rate held: {at_least}{best.good_per_second:.1f} requests per second "
            f"(p{self.limits.percentile:g} {best.latency_ms:.1f} ms over {best.seconds:g} s){why}",
            *self._doubts(best),
        ]

    def _nothing_held(self) -> str:
        what = "load" if self.limits.stream else "rate"
        option = "--goodput" if self.limits.stream else "--latency-ms"
        return f"no {what} was held; raise {option}, use longer steps, or look at the errors"

    def _doubts(self, best: StepResult) -> Iterator[str]:
        """What makes the result less sure: few requests,
        and steps that something else disturbed.
        """
        if best.confidence is not None and best.confidence < _SURE:
            yield (
                f"{best.over} of {best.requests} requests were over the limit, so the rate is held "
                f"with a confidence of {best.confidence:.0%} only; "
                "raise --step-seconds or --step-requests"
            )
        rates = sorted({step.rate for step in HeldSteps.of(self.steps).disturbed})
        if rates:
            yield (
                "not held at first, but held later or at higher rates: "
                f"{', '.join(f'{rate:.1f}' for rate in rates)} per second; something disturbed the "
                "endpoint or this machine"
            )

    def _remedy(self, reason: str) -> str:
        if reason == GENERATOR_WAS_BUSY:
            return "set --processes"
        if not self._loads:
            return "raise --to"
        if self._by_concurrency:
            return "add a higher number to --concurrency"
        return "add a higher rate to --rates"
