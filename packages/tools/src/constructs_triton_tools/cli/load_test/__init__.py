"""``constructs-triton load-test``: find the highest load that an endpoint holds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from typing import Any
from urllib.parse import urlsplit

from constructs_triton_client import HttpTransport, SageMakerTransport
from constructs_triton_client.transports.sagemaker_transport import LOOPBACK_HOSTS
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.program.exit_codes import (
    EXIT_INTERRUPTED,
    EXIT_NOT_DONE,
    EXIT_SUCCESS,
    EXIT_WRONG,
)
from constructs_triton_core.untrusted.terminal import print_json, print_lines, print_note
from constructs_triton_core.untrusted.written_files import write_whole
from constructs_triton_tools.cli.invoke_bodies import read_body
from constructs_triton_tools.cli.load_test.arguments import add_arguments
from constructs_triton_tools.cli.load_test.progress import Progress, describe_streams, explain_unit
from constructs_triton_tools.cli.load_test.streams import (
    GRACE_SECONDS,
    check_arguments,
    read_limits,
)
from constructs_triton_tools.cli.next_command import recommend
from constructs_triton_tools.cli.options import (
    chosen_fields,
    confirm,
    is_container,
    open_session,
)
from constructs_triton_tools.measuring.load_test.confidence import least_requests
from constructs_triton_tools.measuring.load_test.locust_file import format_locustfile
from constructs_triton_tools.measuring.load_test.prepared_requests import prepare
from constructs_triton_tools.measuring.load_test.results_file import (
    BenchmarkMetadata,
    write_results,
)
from constructs_triton_tools.measuring.load_test.search import GENERATOR_WAS_BUSY, HeldSteps, Search
from constructs_triton_tools.measuring.load_test.step import StepResult, StepSettings
from constructs_triton_tools.measuring.load_test.step_runner import StepRunner
from constructs_triton_tools.measuring.load_test.target import describe_target, find_stand_ins
from constructs_triton_tools.measuring.plots.figure import check_path
from constructs_triton_tools.measuring.plots.load_test_plot import plot_load_test
from constructs_triton_tools.planning.csv_table import parse_measured_type
from constructs_triton_tools.planning.prices import cost_per_hour

__all__ = ["add_arguments", "run"]

_FIRST_RATE = 4
_FIRST_CONCURRENCY = 1
_LEAD_SECONDS = 1.0  # what is left out of each later step
_LEAST_REQUESTS = 40
_LONGEST_SECONDS = 60
_SURE = 0.95


def run(arguments: argparse.Namespace) -> int:
    """Run the test and write its results, also after Ctrl-C."""
    _check_output(arguments)
    check_arguments(arguments)
    transport = _transport(arguments)
    invocations = _invocations(arguments, transport)
    if arguments.export_locust:
        return _export(arguments, invocations)
    metadata = _metadata(arguments, transport)
    # Shows what is wrong before the test, and loads each target model.
    for invocation in {str(each.options): each for _, each in invocations}.values():
        _try_out(transport, invocation, is_stream=arguments.stream)
    stand_ins = _find_stand_ins(arguments)
    if stand_ins and not arguments.configuration:
        metadata = replace(metadata, configuration=f"{metadata.configuration} (stand-in)")
    test = _Test(arguments, transport, invocations)
    exit_code = test.run()
    _write(arguments, metadata, test, stand_ins)
    return exit_code


def _find_stand_ins(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the models of a local run that stand-ins run, and print first what this means."""
    if is_container(arguments) or not _is_on_this_machine(arguments.endpoint_url):
        return {}
    server = arguments.inference_component or arguments.target_variant
    found = find_stand_ins(arguments.endpoint_url, arguments.endpoint, variant=server)
    if found and not arguments.json:
        what = ", ".join(f"{model} ({stand_in})" for model, stand_in in sorted(found.items()))
        print_lines(
            f"stand-ins run {what}: these figures are theirs and not those of the models' "
            "backends. Do not size instances with them; measure in AWS, "
            "or with `local up --engine docker`"
        )
    return found


def _is_on_this_machine(url: str | None) -> bool:
    return url is not None and urlsplit(url).hostname in LOOPBACK_HOSTS


def _try_out(transport: Any, invocation: Any, *, is_stream: bool) -> None:
    from constructs_triton_tools.cli.load_test.requests import begin_stream

    if is_stream:
        begin_stream(transport, invocation)
    else:
        transport.invoke(invocation)


def _check_output(arguments: argparse.Namespace) -> None:
    if arguments.plot:
        check_path(arguments.plot)
    if arguments.rates and min(arguments.rates) <= 0:
        raise InvalidValueError(f"--rates: must be above 0, got {min(arguments.rates):g}; raise it")


def _transport(arguments: argparse.Namespace) -> SageMakerTransport | HttpTransport:
    if is_container(arguments):
        return HttpTransport(arguments.endpoint)
    return SageMakerTransport(
        arguments.endpoint, session=open_session(arguments), endpoint_url=arguments.endpoint_url
    )


def _invocations(arguments: argparse.Namespace, transport: Any) -> Any:
    from constructs_triton_tools.cli.load_test import requests as load_requests

    return load_requests.with_archives(_named(arguments, load_requests), transport, arguments.index)


def _named(arguments: argparse.Namespace, load_requests: Any) -> Any:
    chosen = {
        "TargetModel": arguments.target_model,
        "TargetVariant": arguments.target_variant,
        "InferenceComponentName": arguments.inference_component,
    }
    options = {name: value for name, value in chosen.items() if value is not None}
    tensors = (
        load_requests.BodyForm.JSON if arguments.json_tensors else load_requests.BodyForm.BINARY
    )
    form = load_requests.BodyForm.GENERATE if arguments.stream else tensors
    if arguments.body:
        return [(1.0, load_requests.whole_request(read_body(arguments.body), options))]
    if arguments.random == [""]:
        return load_requests.sample_invocations(arguments, options, form=form)
    if arguments.random:
        return load_requests.random_invocations(
            arguments.random, options, seed=arguments.seed, form=form
        )
    if arguments.requests:
        return load_requests.read_lines(
            arguments.requests, options, with_batch=arguments.batch, form=form
        )
    return load_requests.read_inputs(
        arguments.inputs, options, with_batch=arguments.batch, form=form
    )


def _export(arguments: argparse.Namespace, invocations: Any) -> int:
    if is_container(arguments):
        raise InvalidValueError(
            "--export-locust: calls InvokeEndpoint; give the name of an endpoint"
        )
    text = format_locustfile(
        arguments.endpoint,
        invocations,
        endpoint_url=arguments.endpoint_url,
        region=arguments.region,
    )
    write_whole(arguments.export_locust, text)
    print_lines(
        f"wrote {arguments.export_locust}; run it with `locust -f {arguments.export_locust}`"
    )
    return EXIT_SUCCESS


# --- what is tested -------------------------------------------------------------------------------


def _metadata(arguments: argparse.Namespace, transport: Any) -> BenchmarkMetadata:
    """Check that the test is safe, and name what it measures.

    Raises:
        InvalidValueError: the load would reach others, or scaling would change the instances
            during the test.
    """
    url = arguments.endpoint if is_container(arguments) else arguments.endpoint_url
    type_ = "local"
    source = "local"
    count = 1
    if not _is_on_this_machine(url):
        type_, source, count = _describe(arguments, transport, url)
    if arguments.instance_type:
        type_ = parse_measured_type("--instance-type", arguments.instance_type)
        source = "given"
    return BenchmarkMetadata(
        configuration=arguments.configuration or _name(arguments),
        instance_type=type_,
        instance_type_source=source,
        instance_count=arguments.instances or count,
    )


def _name(arguments: argparse.Namespace) -> str:
    name = urlsplit(arguments.endpoint).netloc or arguments.endpoint
    return "/".join(filter(None, [name, arguments.target_variant]))


def _describe(
    arguments: argparse.Namespace, transport: Any, url: str | None
) -> tuple[str, str, int]:
    if url is not None:
        confirm(
            arguments,
            lambda: f"Send load to {url}, which may cost money and disturb other callers?",
        )
        return _unknown(arguments)

    target = describe_target(transport, variant=arguments.target_variant)
    for note in target.notes:
        print_note(f"warning: {note}")
    if target.is_scaled and not arguments.allow_scaling:
        raise InvalidValueError(
            f"{arguments.endpoint}: Application Auto Scaling may change the instance count during "
            "the test; suspend it (`count.suspend()` in the app), or add --allow-scaling"
        )
    type_ = target.instance_type
    count = target.instance_count
    confirm(arguments, lambda: _question(arguments, {type_: count} if type_ and count else {}))
    return _unknown(arguments) if type_ is None or count is None else (type_, "endpoint", count)


def _question(arguments: argparse.Namespace, instances: dict[str, int]) -> str:
    cost = cost_per_hour(open_session(arguments), instances)
    return (
        f"Send load to {arguments.endpoint}, "
        f"whose instances cost {cost}? It may disturb other callers."
    )


def _unknown(arguments: argparse.Namespace) -> tuple[str, str, int]:
    if arguments.output and not (arguments.instance_type and arguments.instances):
        raise InvalidValueError(
            f"{arguments.endpoint}: its instances are unknown; set --instance-type and --instances"
        )
    return "local", "given", 1


# --- the test -------------------------------------------------------------------------------------


class _Test:
    """The steps of one test; ``steps`` has those that were finished."""

    def __init__(self, arguments: argparse.Namespace, transport: Any, invocations: Any) -> None:
        self._arguments = arguments
        self.limits = read_limits(arguments)
        self._by_concurrency = arguments.concurrency is not None
        self._loads = arguments.concurrency or arguments.rates or ()
        self._progress = Progress(
            self.limits, quiet=arguments.json, by_concurrency=self._by_concurrency
        )
        self._runner = StepRunner(
            [
                prepare(transport, invocation, weight=weight, is_stream=arguments.stream)
                for weight, invocation in invocations
            ],
            self.limits,
            processes=arguments.processes,
            show=self._progress.show if sys.stderr.isatty() else None,
        )
        start = arguments.start or (_FIRST_CONCURRENCY if self._by_concurrency else _FIRST_RATE)
        maximum = inf if arguments.maximum is None else arguments.maximum
        self._search = Search(
            self._measure, start=start, maximum=maximum, is_whole=self._by_concurrency
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
        if not self._loads:
            yield from self._search.run()
        for rate in self._loads:
            yield self._measure(rate, 1)

    def _measure(self, rate: float, times: float) -> StepResult:
        return self._runner.measure(rate, self._settings(rate, times))

    def _settings(self, rate: float, times: float) -> StepSettings:
        arguments = self._arguments
        requests = max(_LEAST_REQUESTS, least_requests(self.limits.percentile))
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
            what, option = ("load", "--goodput") if self.limits.stream else ("rate", "--latency-ms")
            return [f"no {what} was held; raise {option}, use longer steps, or look at the errors"]
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
        option = "--concurrency" if self._by_concurrency else "--rates"
        what = "number" if self._by_concurrency else "rate"
        return f"add a higher {what} to {option}" if self._loads else "raise --to"


def _write(
    arguments: argparse.Namespace,
    metadata: BenchmarkMetadata,
    test: _Test,
    stand_ins: dict[str, str],
) -> None:
    if arguments.json:
        steps = [step.to_dict() for step in test.steps]
        best = test.best and {
            **test.best.to_dict(),
            "is_lower_bound": bool(test.lower_bound_reason),
        }
        print_json(
            {"best": best, "steps": steps, **({"stand_ins": stand_ins} if stand_ins else {})}
        )
    else:
        print_lines(*test.summary())
    if arguments.output:
        count = write_results(
            arguments.output, metadata, test.steps, append=arguments.append, started=test.started
        )
        print_note(f"wrote {count} rows to {arguments.output}")
        # Without a load that was held, a plan has nothing to choose from.
        if test.best is not None or arguments.append:
            load = "--concurrent-streams" if arguments.stream else "--requests-per-second"
            recommend(f"plan {arguments.output} {load} N")
    if arguments.plot and test.steps:
        plot_load_test(test.steps, arguments.plot, test.limits, title=metadata.configuration)
