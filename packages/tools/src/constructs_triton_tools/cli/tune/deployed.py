"""``constructs-triton tune`` in AWS: its arguments, its cost, and what earlier runs have left."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from constructs_triton_core.aws_reader import AwsReader, make_session
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.program.argument_types import number
from constructs_triton_core.untrusted.terminal import print_json, print_lines, print_note
from constructs_triton_tools.measuring.tuning.deployed.policies import policy_document
from constructs_triton_tools.measuring.tuning.deployed.run_stack import (
    FoundStack,
    delete_archives,
    delete_stack,
    find_stacks,
)

if TYPE_CHECKING:
    from constructs_triton_tools.measuring.tuning.deployed.place import AwsPlace

__all__ = ["add_aws", "clean", "describe_cost", "print_policy", "read_place"]

_AWS_OPTIONS = ("role", "bucket", "price_per_hour", "budget_usd", "image_uri", "keep")


def add_aws(group: argparse._ArgumentGroup) -> None:
    """Declare the arguments of a search in AWS."""
    # fmt: off
    group.add_argument("--instance-type", metavar="TYPE",
                       help="search on instances of SageMaker of this type, which cost money")
    group.add_argument("--role", metavar="ARN", help="role of the models; required with --instance-type")
    group.add_argument("--bucket", metavar="NAME",
                       help="bucket of the archives; required with --instance-type")
    group.add_argument("--region", metavar="REGION",
                       help="AWS Region (default: that of your AWS configuration)")
    group.add_argument("--image-uri", metavar="URI", help="image of the endpoint (default: AWS's newest)")
    group.add_argument("--price-per-hour", type=number(RangeLimit(0.001, None)), metavar="USD",
                       help="price of an instance hour (default: ask the AWS Price List API)")
    group.add_argument("--budget-usd", type=number(RangeLimit(0.01, None)), metavar="USD",
                       help="refuse a search that may cost more (default: no limit)")
    group.add_argument("--keep", action="store_true",
                       help="leave the last endpoint until it expires")
    group.add_argument("--clean", action="store_true",
                       help="list and delete what earlier searches have left in the account")
    group.add_argument("--policy", choices=("caller", "models"),
                       help="print the IAM policy of the user of this command, or of --role")
    # fmt: on


def _make_reader(arguments: argparse.Namespace) -> AwsReader:
    session = make_session(arguments.region)
    if session.region_name is None:
        raise InvalidValueError(
            "--region: there is no default Region; set --region, for example to eu-west-1"
        )
    return AwsReader(session)


def read_place(arguments: argparse.Namespace) -> AwsPlace | None:
    """Return where a search in AWS runs; ``None`` for one on this machine.

    Raises:
        InvalidValueError: an argument is missing, or the price is not known.
    """
    if arguments.instance_type is None:
        given = [name for name in _AWS_OPTIONS if getattr(arguments, name)]
        if given:
            raise InvalidValueError(
                f"--{given[0].replace('_', '-')}: is for searches in AWS; add --instance-type"
            )
        return None
    from constructs_triton_tools.measuring.tuning.deployed.place import AwsPlace, fetch_price

    role, bucket = _required(arguments)
    reader = _make_reader(arguments)
    return AwsPlace(
        instance_type=arguments.instance_type,
        role=role,
        bucket=bucket,
        reader=reader,
        usd_per_hour=arguments.price_per_hour or fetch_price(reader, arguments.instance_type),
        image=arguments.image_uri or "",
        budget_usd=arguments.budget_usd,
        keeps_endpoint=arguments.keep,
    )


def _required(arguments: argparse.Namespace) -> tuple[str, str]:
    for name in ("role", "bucket"):
        if getattr(arguments, name) is None:
            raise InvalidValueError(f"--{name}: is required in AWS; add --{name}")
    if ":iam:" not in arguments.role:
        raise InvalidValueError(
            f"--role: must be an ARN, got {arguments.role!r}; write arn:aws:iam::111122223333:role/NAME"
        )
    return arguments.role, arguments.bucket


def describe_cost(place: AwsPlace, minutes: float) -> Iterator[str]:
    """Say what a search costs, and when it ends by itself."""
    yield (
        f"  cost      up to {place.most_usd(minutes):.2f} USD; {place.usd_per_hour:g} per instance and hour, "
        "with one in the search and two in the comparison"
    )
    yield (
        f"  end       the endpoints are deleted at the end, and in any case after "
        f"{place.minutes_to_live(minutes):g} minutes, also if this machine is off"
    )
    yield from (f"  warning   {each}" for each in place.warnings)


def print_policy(arguments: argparse.Namespace) -> int:
    """Print an IAM policy; nothing is called."""
    print_json(policy_document(arguments.policy, *_required(arguments)))
    return 0


# --- what earlier searches have left ----------------------------------------------------------------------


def clean(arguments: argparse.Namespace, confirm: Callable[[], None]) -> int:
    """List the stacks of searches and delete them with their archives."""
    reader = _make_reader(arguments)
    found = list(find_stacks(reader))
    if not arguments.json:
        print_lines(*([_describe(each) for each in found] or ["Searches have left nothing."]))
    if found:
        confirm()
        for each in found:
            print_note(f"deletes the endpoint {each.name}")
            delete_stack(reader, each.name)
            if each.bucket:
                delete_archives(reader, each.bucket, each.archives)
    if arguments.json:
        print_json({"deleted": [each.name for each in found]})
    return 0


def _describe(stack: FoundStack) -> str:
    state = "expired" if stack.is_expired else "may run now, expires"
    return f"{stack.name}  {stack.status}  {state} {stack.expires}"
