"""``constructs-triton status``: show what endpoints are doing."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, TypedDict

from constructs_triton_core.declared_values import Value
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.model_index import ModelIndex, some_of
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS, EXIT_WRONG
from constructs_triton_core.untrusted.terminal import print_json, print_lines, print_note, show_work
from constructs_triton_tools.cli.options import (
    add_aws_arguments,
    add_options,
    endpoint_names,
    fitting,
    open_session,
    read_each,
)
from constructs_triton_tools.operations.component_state import ComponentState
from constructs_triton_tools.operations.served_archives import ServedArchives
from constructs_triton_tools.operations.status import (
    EndpointState,
    ScalingState,
    VariantState,
    read_status,
)
from constructs_triton_tools.planning.prices import Prices, read_prices

if TYPE_CHECKING:
    import boto3

_WATCH_SECONDS = 10.0
#: Models of a multi-model endpoint that are listed; of more, the number and a few are shown.
_LISTED_MODELS = 10
_CHANGING = ("Creating", "Updating", "SystemUpdating", "RollingBack", "Deleting")
_WITHOUT_SERVICE = ("Creating", "Deleting", "Failed")


class _Shown(TypedDict, total=False):
    watch: Annotated[
        bool, Value("print the state again while it changes, until the update ends", default=False)
    ]
    ui: Annotated[
        bool,
        Value(
            "serve a web page on 127.0.0.1 that shows the state and the metrics of the last hour; "
            "reads at most once a minute, because CloudWatch bills each metric that is read",
            default=False,
        ),
    ]
    port: Annotated[
        int, Value("port of the page", default_text="any free port", limit=RangeLimit(0, 65535))
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Show what endpoints are doing: instances, image, models, scaling, alarms and the last "
        "deployment. Exit code 1 if an endpoint or one "
        "of its inference components is not in service."
    )
    add_aws_arguments(parser, has_stack=True)
    add_common(parser, "--json")
    add_options(parser, _Shown)
    add_common(parser, "--prices")


def run(arguments: argparse.Namespace) -> int:
    """Print the state; return 1 if an endpoint is not in service, else 0."""
    session = open_session(arguments)
    names = endpoint_names(arguments, session)
    if arguments.ui:
        return _serve(session, names, arguments)
    if arguments.port is not None or arguments.prices is not None:
        raise InvalidValueError("--port, --prices: are about the page; add --ui, or remove them")
    shown: Sequence[EndpointState] = ()
    while True:
        with show_work("reading the state of endpoints"):
            states, not_read = read_each(names, lambda name: read_status(session, name))
        if states != shown:
            _print(states, arguments)
            print_note(*not_read)
        shown = states
        if not arguments.watch or not any(_is_changing(state) for state in states):
            is_good = not not_read and all(_is_in_service(state) for state in states)
            return EXIT_SUCCESS if is_good else EXIT_WRONG
        time.sleep(_WATCH_SECONDS)


def _serve(session: boto3.Session, names: Sequence[str], arguments: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    from constructs_triton_tools.local.page.deployed import DeployedPage, serve_deployed

    if arguments.json or arguments.watch:
        raise InvalidValueError(
            "--ui: cannot be combined with --json and --watch; remove one of them"
        )
    prices = read_prices(arguments.prices) if arguments.prices else Prices({})
    for name in names:
        read_status(session, name)  # an endpoint that does not exist is an error of the command
    serve_deployed(DeployedPage(session, names, prices), arguments.port or 0, print_note)
    return EXIT_SUCCESS


def _is_changing(state: EndpointState) -> bool:
    """Whether the endpoint or one of its components is being changed."""
    statuses = [state.status, *(component.status for component in state.components)]
    return any(status in _CHANGING for status in statuses)


def _is_in_service(state: EndpointState) -> bool:
    """Return whether the endpoint and its components serve. A component that scales, serves too."""
    is_missing = any(component.status in _WITHOUT_SERVICE for component in state.components)
    return state.status == "InService" and not is_missing


def _print(states: Sequence[EndpointState], arguments: argparse.Namespace) -> None:
    if arguments.json:
        print_json({"endpoints": [state.to_dict() for state in states]})
        return
    for index, state in enumerate(states):
        print_lines(*([""] if index else []), *fitting(_lines(state)))


def _lines(state: EndpointState) -> Iterator[str]:
    yield f"{state.name}: {state.status}"
    if state.failure_reason:
        yield f"  reason: {state.failure_reason}"
    when = f"{state.last_modified:%Y-%m-%d %H:%M:%S %Z}, " if state.last_modified else ""
    yield f"  last deployment: {when}{state.deployment}"
    yield f"  configuration: {state.endpoint_config}"
    for variant in state.variants:
        yield from _variant_lines(variant)
    yield from _listed("update", state.pending)
    for component in state.components:
        yield from _component_lines(component)
    for scaling in state.scaling:
        yield from _scaling_lines(scaling)
    yield from _listed("captured requests", filter(None, [state.captured_to]))
    yield from _listed("alarm", state.alarms)
    yield from _listed("not read", state.not_read)


def _variant_lines(variant: VariantState) -> Iterator[str]:
    kind = "shadow variant" if variant.is_shadow else "variant"
    status = f", {variant.status}" if variant.status else ""
    yield (
        f"  {kind} {variant.name}: {_count(variant.current_instances)} of "
        f"{_count(variant.desired_instances)} instances of {_types(variant)}{status}"
    )
    if variant.image:
        ami = variant.inference_ami or "SageMaker's default"
        yield f"    Triton {variant.triton_version or 'unknown'}, inference AMI {ami}"
        yield f"    image {variant.image}"
    if variant.archives is not None:
        yield from _archive_lines(variant.archives)


def _archive_lines(archives: ServedArchives) -> Iterator[str]:
    yield f"    models from {archives.url}"
    width = max(map(len, archives.models), default=0)
    if len(archives.models) <= _LISTED_MODELS:
        for name, archive in sorted(archives.models.items()):
            yield f"      {name:{width}}  {archive}"
    else:
        index = ModelIndex(archives.models, archives.index_uri)
        yield (
            f"      {len(index.target_models):,} models: "
            f"{some_of(index.target_models, index.listing)}"
        )
    if archives.removed:
        yield f"      deployed, but not in the index: {some_of(archives.removed)}"


def _types(variant: VariantState) -> str:
    pools = ", ".join(f"{name} ({count})" for name, count in variant.instance_pools.items())
    return pools or variant.instance_type or "unknown type"


def _component_lines(component: ComponentState) -> Iterator[str]:
    yield (
        f"  inference component {component.name}: {component.status}, "
        f"{_count(component.current_copies)} of {_count(component.desired_copies)} copies"
    )
    if component.failure_reason:
        yield f"    reason: {component.failure_reason}"
    if component.model:
        yield f"    model {component.model}"


def _scaling_lines(scaling: ScalingState) -> Iterator[str]:
    yield f"  scaling of {scaling.name}: {scaling.minimum} to {scaling.maximum} {scaling.unit}"
    yield from _listed("  policy", scaling.policies)
    yield from _listed("  activity", scaling.activities)


def _listed(word: str, lines: Iterable[str]) -> Iterator[str]:
    return (f"  {word}: {line}" for line in lines)


def _count(number: int | None) -> str:
    return "?" if number is None else str(number)
