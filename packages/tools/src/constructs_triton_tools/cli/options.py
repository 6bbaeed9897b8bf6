"""The options that several commands share, and what commands do with them."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, TypeVar, cast, get_args, get_origin

from constructs_triton_core.aws_reader import make_session
from constructs_triton_core.declared_values import Value, declared_values
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.program.argument_types import add_common, argument_type, pair_argument
from constructs_triton_core.untrusted.terminal import print_json, print_lines, print_note
from constructs_triton_tools.cli.flags import add_option, default_words, given
from constructs_triton_tools.planning.csv_table import parse_measured_type
from constructs_triton_tools.planning.quantities import read_decimal, read_positive

if TYPE_CHECKING:
    import boto3

_OptionsT = TypeVar("_OptionsT", bound=Mapping[str, Any])
_Result = TypeVar("_Result")
_DURATION = re.compile(r"(\d{1,5})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
#: Reads a number exactly.
decimal_argument = argument_type(read_decimal)


# --- declarations ---------------------------------------------------------------------------------


class _Collected(argparse.Action):
    """Keeps all values of an option that takes several, or that may be repeated, as a tuple."""

    def __call__(
        self, _parser: Any, namespace: argparse.Namespace, values: Any, _flag: str | None = None
    ) -> None:
        before = getattr(namespace, self.dest) or ()
        more = values if isinstance(values, list) else [values]
        setattr(namespace, self.dest, (*before, *more))


def add_options(
    group: argparse._ActionsContainer, kind: Any, *names: str, without: Sequence[str] = ()
) -> None:
    """Declare options of a dataclass or ``TypedDict``: all that have a flag, or only those of
    ``names``.

    An option that is a ``Sequence`` may be repeated, and one that is a ``tuple`` takes several
    values.
    """
    values = declared_values(kind)
    chosen_names = names or [name for name in values if name not in without]
    for name in chosen_names:
        value = values[name]
        types = _types(value)
        if tuple in types or Sequence in types:
            _add_list(group, name, value)
        elif Mapping not in types and (value.read or Decimal in types):
            _add_exact(group, name, value)
        else:
            add_option(group, kind, name)


def _types(value: Value) -> set[Any]:
    """Return the types that a value may have, without their parameters."""
    return {get_origin(alternative) or alternative for alternative in value.alternatives}


def _add_list(group: argparse._ActionsContainer, name: str, value: Value) -> None:
    """Declare an option that takes several values after one flag, or one after each flag."""
    takes_several = tuple in _types(value)
    repeated = "; may be repeated" if Sequence in _types(value) else ""
    group.add_argument(
        *_flags(value),
        dest=name,
        action=_Collected,
        nargs="+" if takes_several else None,
        type=_reader(value),
        default=None if NoneType in get_args(value.annotation) else (),
        metavar=value.metavar,
        required=value.is_required,
        help=f"{value.text}{repeated}{default_words(value)}",
    )


def _add_exact(group: argparse._ActionsContainer, name: str, value: Value) -> None:
    """Declare an option whose string is read exactly, as a decimal number or by a function."""
    group.add_argument(
        *_flags(value),
        dest=name,
        type=_reader(value),
        default=value.default,
        metavar=value.metavar,
        required=value.is_required,
        help=f"{value.text}{default_words(value)}",
    )


def _flags(value: Value) -> list[str]:
    return [flag for flag in (value.short, value.option) if flag]


def _reader(value: Value) -> Callable[[str], Any]:
    """Return the function that reads the string of an option."""
    if value.read:
        return value.read
    return decimal_argument if Decimal in _types(value) else str


def add_actions(
    parser: argparse.ArgumentParser, **texts: tuple[str, str]
) -> list[argparse.ArgumentParser]:
    """Declare the actions of a command, each with its line of the help and its description."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    return [
        actions.add_parser(name, help=summary, description=description)
        for name, (summary, description) in texts.items()
    ]


def refuse_with(other: str, unfit: Mapping[str, tuple[Any, str]]) -> None:
    """Reject options that were given with another one, such as ``--stream``, each for a reason.

    Raises:
        InvalidValueError: one of them was given.
    """
    for option, (is_given, why) in unfit.items():
        if is_given:
            raise InvalidValueError(f"{option}: cannot be used with {other}: {why}")


def chosen(arguments: argparse.Namespace, options: type[_OptionsT]) -> _OptionsT:
    """Return the options of a ``TypedDict`` that were given or have a default.

    In ``read_logs(**chosen(arguments, Options))``, mypy says which option is no parameter.
    """
    return cast(_OptionsT, chosen_fields(arguments, options))


def chosen_fields(arguments: argparse.Namespace, kind: type[object]) -> dict[str, Any]:
    """Return the fields of a dataclass that were given as options or have a default there."""
    return {name: value for name, value in given(arguments, kind).items() if value != ()}


# --- AWS ------------------------------------------------------------------------------------------


def add_aws_arguments(parser: argparse.ArgumentParser, *, has_stack: bool = False) -> None:
    """Declare the endpoint, the Region and the profile."""
    parser.add_argument(
        "endpoint",
        metavar="ENDPOINT",
        help="name of the endpoint",
        nargs="?" if has_stack else None,
    )
    if has_stack:
        add_common(parser, "--stack", help="all endpoints of this CloudFormation stack")
    add_common(parser, "--region", "--profile")


def open_session(arguments: argparse.Namespace) -> boto3.Session:
    """Return the session that the arguments choose."""
    return make_session(arguments.region, arguments.profile)


def endpoint_names(arguments: argparse.Namespace, session: boto3.Session) -> list[str]:
    """Return the endpoint of the command, or those of its stack."""
    from constructs_triton_tools.operations.stack_endpoints import endpoints_of_stack

    if (arguments.endpoint is None) == (arguments.stack is None):
        raise InvalidValueError(
            "ENDPOINT: give the name of an endpoint, or --stack with the name of a stack"
        )
    if arguments.stack:
        return endpoints_of_stack(session, arguments.stack)
    return [arguments.endpoint]


def read_each(
    names: Sequence[str], read: Callable[[str], _Result]
) -> tuple[list[_Result], list[str]]:
    """Read endpoints, and return the errors of those that cannot be read if
    others of the stack can.
    """
    results = []
    errors = []
    for name in names:
        try:
            results.append(read(name))
        except InvalidValueError as error:
            errors.append(error)
    if errors and not results:
        raise errors[0]
    return results, [f"not read: {error}" for error in errors]


def parse_duration(text: str) -> timedelta:
    """Read a duration such as ``90s``, ``15m``, ``1h`` or ``2d``."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"must be a number and s, m, h or d, such as 15m, got {text!r}"
        )
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


# --- requests -------------------------------------------------------------------------------------


class Connection(TypedDict, total=False):
    """How a request reaches an endpoint or an inference component."""

    inference_component: Annotated[
        str, Value("inference component, on an endpoint that has them", metavar="NAME")
    ]
    wake_timeout: Annotated[
        float,
        Value(
            "how long to wait for the first copy of a component that scales to zero",
            default=0,
            limit=RangeLimit(0, None, "seconds"),
            metavar="SECONDS",
        ),
    ]
    index: Annotated[
        str,
        Value(
            "index.json that maps model names to archives",
            default_text="that of the endpoint, which needs permission to describe it",
            metavar="S3_URI",
        ),
    ]


class Body(TypedDict, total=False):
    """A request that is sent as it is."""

    body: Annotated[
        str,
        Value(
            "a whole request as a JSON object, such as a chat completion, "
            "or @ and the path of its file",
            metavar="JSON",
        ),
    ]


class Requests(TypedDict, total=False):
    """Which model answers requests, and the form of their inputs."""

    batch: Annotated[
        bool,
        Value(
            "add a batch axis of size 1 to every input (for max_batch_size above 0)", default=False
        ),
    ]
    repository: Annotated[
        Path,
        Value(
            "model repository with the shapes of random data, "
            "and with the names of tensors for errors",
            default=Path("models"),
            metavar="DIR",
        ),
    ]
    model: Annotated[
        str,
        Value(
            "model of that repository",
            default_text="the one with the endpoint's name, or the only one",
            metavar="NAME",
        ),
    ]
    shapes: Annotated[
        Sequence[str],
        Value(
            "dims of an input for random data, without the batch dimension",
            default_text="1 for each variable size",
            flag="--shape",
            metavar="NAME=DIMS",
        ),
    ]
    target_model: Annotated[
        str,
        Value(
            "model of a multi-model endpoint, by its name or by that of its archive",
            metavar="MODEL",
        ),
    ]
    target_variant: Annotated[
        str,
        Value(
            "variant that answers, whose instances a load test counts alone",
            default_text="SageMaker chooses one by the weights",
            metavar="NAME",
        ),
    ]


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Declare what ``invoke.connect`` and requests to components read."""
    add_options(parser, Connection)
    add_common(parser, "--endpoint-url", "--region", "--profile")


def add_called_endpoint(parser: argparse.ArgumentParser) -> None:
    """Declare the endpoint or the container that is called."""
    parser.add_argument(
        "endpoint",
        metavar="NAME",
        help=(
            "name of the endpoint, http://HOST:PORT of a container, "
            "or an address that ends in /completions"
        ),
    )


def is_container(arguments: argparse.Namespace) -> bool:
    """Whether the called endpoint is the address of a container."""
    return bool(arguments.endpoint.startswith(("http://", "https://")))


# --- prices ---------------------------------------------------------------------------------------


def _price(_place: str, text: str) -> tuple[str, Decimal]:
    """Read the price of an instance type, such as ``ml.g5.xlarge=1.41``."""
    name, price = pair_argument("TYPE=PRICE", "ml.g5.xlarge=1.41")(text)
    return parse_measured_type("instance type", name), read_positive(name, price)


def add_price_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare ``--price`` and ``--prices``."""
    parser.add_argument(
        "--price",
        action=_Collected,
        nargs="+",
        type=argument_type(_price),
        default=(),
        metavar="TYPE=PRICE",
        help="price per instance hour, for example ml.g5.xlarge=1.41; "
        "overrides --prices, in the same currency",
    )
    add_common(parser, "--prices")


# --- the dialogue ---------------------------------------------------------------------------------


def confirm(arguments: argparse.Namespace, question: Callable[[], str]) -> None:
    """Ask before something costs money or deletes; ``--yes`` answers the question.

    Raises:
        InvalidValueError: the answer is not yes, or standard input is not a terminal.
    """
    if arguments.yes:
        return
    print_note(f"{question()} [y/N]")
    if not sys.stdin.isatty():
        raise InvalidValueError(
            "--yes: nothing was done, because no terminal can answer; add --yes"
        )
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InvalidValueError(
            "--yes: nothing was done, because the answer was no; answer y, or add --yes"
        )


def show(arguments: argparse.Namespace, document: Any, *lines: str) -> None:
    """Print what a command found: the document with ``--json``, else the lines."""
    if arguments.json:
        print_json(document)
    else:
        print_lines(*fitting(lines))


def fitting(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines that fit the terminal: a long one continues below, indented.

    A pipe gets long lines.
    """
    if not sys.stdout.isatty():
        yield from lines
        return
    width = get_terminal_size().columns
    for line in lines:
        indent = len(line) - len(line.lstrip())
        wrapped = wrap(
            line,
            width,
            subsequent_indent=" " * (indent + 2),
            break_long_words=False,  # a path or an ARN stays whole, so that it can be copied
            break_on_hyphens=False,
        )
        yield from wrapped or [line]
