"""``constructs-triton load-test``: find the highest load that an endpoint holds."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from constructs_triton_client import HttpTransport, SageMakerTransport
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.terminal import print_json, print_lines, print_note
from constructs_triton_tools.cli.invoke_bodies import read_body
from constructs_triton_tools.cli.load_test.arguments import add_arguments
from constructs_triton_tools.cli.load_test.exports import (
    export_aiperf_template,
    export_locustfile,
)
from constructs_triton_tools.cli.load_test.measured_steps import LoadTest
from constructs_triton_tools.cli.load_test.streams import check_arguments
from constructs_triton_tools.cli.load_test.tested_endpoint import (
    describe_test,
    find_measured_stand_ins,
)
from constructs_triton_tools.cli.next_command import recommend
from constructs_triton_tools.cli.options import is_container, open_session
from constructs_triton_tools.measuring.load_test.results_file import (
    BenchmarkMetadata,
    write_results,
)
from constructs_triton_tools.measuring.plots.figure import check_path
from constructs_triton_tools.measuring.plots.load_test_plot import plot_load_test

__all__ = ["add_arguments", "run"]


def run(arguments: argparse.Namespace) -> int:
    """Run the test and write its results, also after Ctrl-C."""
    _check_output(arguments)
    check_arguments(arguments)
    transport = _transport(arguments)
    invocations = _invocations(arguments, transport)
    if arguments.export_locust:
        return export_locustfile(arguments, invocations)
    if arguments.export_aiperf:
        return export_aiperf_template(arguments, invocations)
    metadata = describe_test(arguments, transport)

    # Shows what is wrong before the test, and loads each target model.
    targets = {str(invocation.options): invocation for _, invocation in invocations}
    for invocation in targets.values():
        _try_out(transport, invocation, is_stream=arguments.stream)

    stand_ins = find_measured_stand_ins(arguments)
    if stand_ins and not arguments.configuration:
        metadata = replace(metadata, configuration=f"{metadata.configuration} (stand-in)")
    test = LoadTest(arguments, transport, invocations)
    exit_code = test.run()
    _write(arguments, metadata, test, stand_ins)
    return exit_code


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
    form = load_requests.BodyForm.BINARY
    if arguments.stream:
        form = load_requests.BodyForm.GENERATE
    elif arguments.json_tensors or arguments.export_aiperf:
        form = load_requests.BodyForm.JSON

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


def _write(
    arguments: argparse.Namespace,
    metadata: BenchmarkMetadata,
    test: LoadTest,
    stand_ins: dict[str, str],
) -> None:
    if arguments.json:
        print_json(_as_json(test, stand_ins))
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


def _as_json(test: LoadTest, stand_ins: dict[str, str]) -> dict[str, Any]:
    best = test.best
    found: dict[str, Any] = {"best": None, "steps": [step.to_dict() for step in test.steps]}
    if best is not None:
        found["best"] = {**best.to_dict(), "is_lower_bound": bool(test.lower_bound_reason)}
    if stand_ins:
        found["stand_ins"] = stand_ins
    return found
