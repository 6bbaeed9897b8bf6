"""Reads what an update would replace: the template, the parameters and the drift of a deployed
stack.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from cdk_rehearse.updates.versions import Drift
from constructs_triton_core.aws_reader import AwsError, AwsReader

if TYPE_CHECKING:
    import boto3


class Deployed(NamedTuple):
    """A deployed stack.

    Args:
        text: Its template after its transforms.
        parameters: Values of its parameters by name.
        drifts: What the last detection of drift has found.
        note: Why the drift is not known; empty if it is.
    """

    text: str
    parameters: dict[str, str]
    drifts: tuple[Drift, ...] = ()
    note: str = ""


def read_deployed(session: boto3.Session, stack: str) -> Deployed:
    """Read the template, the parameters and the drift of a stack.

    It uses ``cloudformation:GetTemplate``, ``DescribeStacks`` and, of a stack that has drifted,
    ``DescribeStackResourceDrifts``. Without permission for the second there are no parameters. Of a
    parameter with ``NoEcho``, AWS returns asterisks.

    Args:
        session: boto3 session with the Region and credentials.
        stack: Name or ARN of the stack.

    Raises:
        AwsError: the stack does not exist or accepts no update, the credentials may not read it, or
            AWS cannot be reached.
    """
    reader = AwsReader(session)
    request = {"StackName": stack, "TemplateStage": "Processed"}
    body = reader.describe(f"stack {stack}", "cloudformation", "get_template", **request)[
        "TemplateBody"
    ]
    text = body if isinstance(body, str) else json.dumps(body)  # boto3 has parsed what is JSON
    try:
        found = reader.require("cloudformation", "describe_stacks", StackName=stack)["Stacks"][0]
    except AwsError as error:
        if error.code:
            return Deployed(text, {})
        raise
    status = found.get("StackStatus", "")
    if re.search("^(ROLLBACK|DELETE)_|ROLLBACK_FAILED|(?<!REVIEW_IN_)PROGRESS", status):
        fix = "wait, run `npx cdk rollback`, or pass `none` as OLD if the stack was never created"
        raise AwsError(
            f"stack {stack}: CloudFormation accepts no update in the state {status}", fix
        )

    parameters = {}
    for parameter in found.get("Parameters", ()):
        parameters[parameter["ParameterKey"]] = parameter["ParameterValue"]
    return Deployed(text, parameters, *_drift(reader, stack, found.get("DriftInformation", {})))


def _drift(
    reader: AwsReader, stack: str, known: Mapping[str, Any]
) -> tuple[tuple[Drift, ...], str]:
    """Return what the last detection of drift has found, or why nothing is known."""
    status = known.get("StackDriftStatus", "NOT_CHECKED")
    look = f"`aws cloudformation detect-stack-drift --stack-name {stack}`"
    if status == "IN_SYNC":
        return (), ""
    if status != "DRIFTED":
        return (
            (),
            f"{look} was not run: changes made in AWS outside of CloudFormation are not known",
        )
    try:
        return tuple(map(_read_drift, _drifted_resources(reader, stack))), ""
    except AwsError as error:
        return (), f"the stack has drifted, and how is not known: {error}"


def _drifted_resources(reader: AwsReader, stack: str) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of all pages; boto3 has no paginator for this operation."""
    request: dict[str, Any] = {
        "StackName": stack,
        "StackResourceDriftStatusFilters": ["MODIFIED", "DELETED"],
    }
    while True:
        page = reader.require("cloudformation", "describe_stack_resource_drifts", **request)
        yield from page["StackResourceDrifts"]
        if not page.get("NextToken"):
            return
        request["NextToken"] = page["NextToken"]


def _read_drift(row: Mapping[str, Any]) -> Drift:
    differences = tuple(
        (
            each["PropertyPath"].removeprefix("/").replace("/", "."),
            each.get("ExpectedValue", "absent"),
            each.get("ActualValue", "absent"),
        )
        for each in row.get("PropertyDifferences", ())
    )
    return Drift(row["LogicalResourceId"], row["ResourceType"], differences)
