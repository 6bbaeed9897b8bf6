"""``constructs-triton models warm``: load the models of a multi-model endpoint."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Annotated, TypedDict

from constructs_triton_client.transports.model_names import ModelNames, find_index
from constructs_triton_client.transports.sagemaker_transport import SageMakerTransport
from constructs_triton_core.declared_values import Value
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.model_index import ModelIndex
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.program.exit_codes import combined_code, exit_code_of
from constructs_triton_tools.cli.options import add_aws_arguments, add_options, open_session, show
from constructs_triton_tools.operations.status import EndpointState, VariantState, read_status
from constructs_triton_tools.operations.warming import (
    WarmedModel,
    calls_for_most_instances,
    expected_instances,
    warm_model,
)


class _Warmed(TypedDict, total=False):
    model: Annotated[Sequence[str], Value("a model of the index, or an archive", metavar="NAME")]
    all: Annotated[bool, Value("all models of the index", default=False)]
    calls: Annotated[
        int,
        Value(
            "calls of each model",
            default_text="as many as reach 95 percent of the instances on average",
            limit=RangeLimit(1, 100),
            metavar="N",
        ),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Load models of a multi-model endpoint before users call them. SageMaker unloads the least "
        "recently used models again when it needs memory. Exit code 1 if a model cannot be loaded."
    )
    add_aws_arguments(parser)
    add_options(parser, _Warmed)
    add_common(parser, "--endpoint-url", "--json")


def run(arguments: argparse.Namespace) -> int:
    """Call the models and print the results; return 1 if one cannot be loaded, else 0."""
    if bool(arguments.model) == arguments.all:
        raise InvalidValueError(
            "--model: name the models to load, or give --all; exactly one of the two"
        )
    if arguments.endpoint_url is not None:
        return _warm_local_run(arguments)
    session = open_session(arguments)
    variant = _multi_model_variant(read_status(session, arguments.endpoint))
    instances = max(1, variant.current_instances or 1)
    calls = arguments.calls or calls_for_most_instances(instances)
    transport = SageMakerTransport(arguments.endpoint, session=session)
    targets = _targets(arguments, variant, transport)
    results = [warm_model(transport, target, calls) for target in targets]
    _print(arguments, results, calls, instances)
    return combined_code(exit_code_of(result.error) for result in results if result.error)


def _warm_local_run(arguments: argparse.Namespace) -> int:
    """Load models of a local run, which has one instance and needs no Region nor credentials."""
    transport = SageMakerTransport(arguments.endpoint, endpoint_url=arguments.endpoint_url)
    names = arguments.model
    if arguments.all:
        names = sorted(find_index(transport, arguments.endpoint).target_models)
    known = ModelNames(transport)
    calls = arguments.calls or 1
    results = [warm_model(transport, known.archive_of(name), calls) for name in names]
    _print(arguments, results, calls, 1)
    return combined_code(exit_code_of(result.error) for result in results if result.error)


def _multi_model_variant(state: EndpointState) -> VariantState:
    for variant in state.variants:
        if variant.archives is not None and variant.archives.is_multi_model:
            return variant
    reason = f" ({state.not_read[0]})" if state.not_read else ""
    raise InvalidValueError(
        f"endpoint {state.name}: must be a multi-model endpoint{reason}; other endpoints load "
        "their models before they are in service"
    )


def _targets(
    arguments: argparse.Namespace, variant: VariantState, transport: SageMakerTransport
) -> list[str]:
    assert variant.archives is not None
    models = variant.archives.models
    uri = variant.archives.index_uri
    names = sorted(models) if arguments.all else arguments.model
    if not names:
        raise InvalidValueError(
            f"--all: {uri} does not exist or has no models; name archives with --model"
        )
    known = ModelNames(transport, ModelIndex(models, uri) if models else None)
    return [known.archive_of(name) for name in names]


def _print(
    arguments: argparse.Namespace, results: Sequence[WarmedModel], calls: int, instances: int
) -> None:
    reached = expected_instances(calls, instances)
    models = {result.target_model: result.error and str(result.error) for result in results}
    called = "call of each model reaches" if calls == 1 else "calls of each model reach"
    show(
        arguments,
        {"calls": calls, "expected_instances": reached, "errors": models},
        *(f"{name}: {error or 'loaded'}" for name, error in models.items()),
        f"{calls} {called} {reached:.1f} of {instances} instances on average, because SageMaker "
        "chooses an instance for each call; it unloads models again when it needs memory",
    )
