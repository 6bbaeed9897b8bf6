"""The actions of CloudFormation's API that the CDK's command line, and boto3 users, call."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

from werkzeug import Request, Response

from constructs_triton_core.cloud_assembly.template import Template

from ..errors import FAILURES, ApiError
from ..template_parsing import parse_template
from .change import wanted_resources
from .change_sets import ChangeSet, resource_changes
from .deployment import Deployer
from .engine import template_at
from .imports import identifiers, import_resources, imported
from .stack import Stack, Stacks

_Request = dict[str, Any]
_Answer = dict[str, Any]
_STACK_NAME = re.compile("[a-zA-Z][-a-zA-Z0-9]{0,127}|arn:.*")
_NO_CHANGES = (
    "The submitted information didn't contain changes. "
    "Submit different information to create a change set."
)


class CloudFormationApi:
    """Answers one action at a time; operations on stacks run in separate threads."""

    def __init__(self, stacks: Stacks, deployer: Deployer) -> None:
        self._stacks = stacks
        self._deployer = deployer
        self._change_sets: list[ChangeSet] = []
        self._operations: list[threading.Thread] = []
        self.region = stacks.api.region
        self.elsewhere: Callable[[str, Request], Response] | None = None
        """Answers a request for another Region. Default: they are refused."""

    def answer(self, action: str, request: _Request) -> _Answer:
        """Execute an action; raises ``ApiError`` if it is refused."""
        method: Callable[[_Request], _Answer] | None = getattr(self, f"_{action}", None)
        if method is None:
            raise ApiError("InvalidAction", f"the action {action} is not simulated")
        if not _STACK_NAME.fullmatch(name := request.get("StackName", "any")):
            raise ApiError(
                "ValidationError", f"stackName {name!r} must match {_STACK_NAME.pattern}"
            )
        try:
            return method(request)
        except FAILURES as error:
            raise ApiError("ValidationError", str(error)) from error

    # Stacks. The methods are named as the actions are.

    def _DescribeStacks(self, request: _Request) -> _Answer:  # noqa: N802
        stacks = [self._stack(request)] if "StackName" in request else self._stacks.all
        return {"Stacks": [_describe(stack) for stack in stacks]}

    def _ListStacks(self, _: _Request) -> _Answer:  # noqa: N802
        return {"StackSummaries": [_describe(stack) for stack in self._stacks.all]}

    def _GetTemplate(self, request: _Request) -> _Answer:  # noqa: N802
        template = self._stack(request).template
        body = template.text or json.dumps(template.body)
        return {"TemplateBody": body, "StagesAvailable": ["Original", "Processed"]}

    def _GetTemplateSummary(self, request: _Request) -> _Answer:  # noqa: N802
        return {
            "Parameters": [],
            "ResourceIdentifierSummaries": identifiers(self._template(request)),
        }

    def _DescribeStackEvents(self, request: _Request) -> _Answer:  # noqa: N802
        stack = self._stack(request)
        events = [
            {
                "EventId": event.id,
                "StackId": stack.id,
                "StackName": stack.name,
                "LogicalResourceId": event.logical_id,
                "PhysicalResourceId": event.physical_id,
                "ResourceType": event.type,
                "ResourceStatus": event.status,
                "ResourceStatusReason": event.reason or None,
                "Timestamp": event.timestamp,
            }
            for event in reversed(stack.events)
        ]
        return {"StackEvents": events}

    def _DescribeStackResources(self, request: _Request) -> _Answer:  # noqa: N802
        return {"StackResources": _describe_resources(self._stack(request))}

    def _ListStackResources(self, request: _Request) -> _Answer:  # noqa: N802
        return {"StackResourceSummaries": _describe_resources(self._stack(request))}

    def _CreateStack(self, request: _Request) -> _Answer:  # noqa: N802
        name, template = request["StackName"], self._template(request)
        if self._stacks.find(name) is not None:
            raise ApiError("AlreadyExistsException", f"Stack [{name}] already exists")
        stack = self._stacks.add(name)
        stack.tags, given = request.get("Tags", []), _given_parameters(request, stack)
        stack.status = "CREATE_IN_PROGRESS"
        self._start(lambda: self._deployer.deploy(stack, template, given))
        return {"StackId": stack.id}

    def _DeleteStack(self, request: _Request) -> _Answer:  # noqa: N802
        stack = self._stacks.find(request["StackName"])
        if stack is not None:  # to delete what is not there is no error
            if stack.termination_protection:
                raise ApiError(
                    "ValidationError", f"Stack [{stack.name}] cannot be deleted while protected"
                )
            self._retain(stack, request.get("RetainResources", []))
            stack.status = "DELETE_IN_PROGRESS"
            self._start(lambda: self._deployer.delete(stack))
        return {}

    def _retain(self, stack: Stack, names: list[str]) -> None:
        if names and stack.status != "DELETE_FAILED":
            raise ApiError(
                "ValidationError", "RetainResources is only for a stack in DELETE_FAILED"
            )
        for name in names:
            stack.resources[name] = replace(stack.resources[name], deletion_policy="Retain")

    def _ContinueUpdateRollback(self, request: _Request) -> _Answer:  # noqa: N802
        stack = self._stack(request)
        resume = self._deployer.resumed_rollback(stack)
        stack.status = "UPDATE_ROLLBACK_IN_PROGRESS"
        self._start(resume)
        return {}

    def _UpdateTerminationProtection(self, request: _Request) -> _Answer:  # noqa: N802
        stack = self._stack(request)
        stack.termination_protection = request["EnableTerminationProtection"]
        return {"StackId": stack.id}

    # Change sets.

    def _CreateChangeSet(self, request: _Request) -> _Answer:  # noqa: N802
        template, stack = self._template(request), self._stacks.find(request["StackName"])
        if stack is None:
            stack = self._stacks.add(request["StackName"])
            stack.enter("REVIEW_IN_PROGRESS", "User Initiated")
        name, api = request["ChangeSetName"], self._stacks.api
        arn = f"arn:aws:cloudformation:{api.region}:{api.account}:changeSet/{name}/{uuid4()}"
        self._deployer.expect_updatable(stack)
        given, tags = _given_parameters(request, stack), request.get("Tags", [])
        template = template.with_parameters(given)
        change_set = ChangeSet(arn, name, stack, template, given, tags)
        if request.get("ChangeSetType") == "IMPORT":
            change_set.imports = imported(request["ResourcesToImport"])
        self._examine(change_set)
        self._change_sets.append(change_set)
        return {"Id": arn, "StackId": stack.id}

    def _examine(self, change_set: ChangeSet) -> None:
        stack, template = change_set.stack, change_set.template
        parameters = self._deployer.check(stack, template, change_set.given)
        evaluator = self._stacks.evaluator(stack, template, parameters, {})
        wanted = wanted_resources(template.resources, evaluator)
        change_set.changes = resource_changes(stack, template, parameters, wanted)
        same_outputs = template.outputs == stack.template.outputs
        if (
            stack.resources
            and not change_set.changes
            and same_outputs
            and change_set.tags == stack.tags
        ):
            change_set.fail(_NO_CHANGES)

    def _DescribeChangeSet(self, request: _Request) -> _Answer:  # noqa: N802
        found = self._change_set(request)
        return {
            "ChangeSetName": found.name,
            "ChangeSetId": found.id,
            "StackId": found.stack.id,
            "StackName": found.stack.name,
            "CreationTime": found.created,
            "Status": found.status,
            "StatusReason": found.reason or None,
            "ExecutionStatus": found.execution_status,
            "Parameters": _pairs(found.given),
            "Tags": found.tags,
            "Changes": [{"Type": "Resource", "ResourceChange": change} for change in found.changes],
        }

    def _ExecuteChangeSet(self, request: _Request) -> _Answer:  # noqa: N802
        found = self._change_set(request)
        if found.execution_status != "AVAILABLE":
            raise ApiError(
                "InvalidChangeSetStatus", f"ChangeSet [{found.name}] is {found.execution_status}"
            )
        found.execution_status = "EXECUTE_COMPLETE"
        stack = found.stack
        stack.tags = found.tags
        if found.imports:
            self._import(found)
            return {}
        stack.status = "UPDATE_IN_PROGRESS" if stack.resources else "CREATE_IN_PROGRESS"
        self._start(lambda: self._deployer.deploy(stack, found.template, found.given))
        return {}

    def _import(self, change_set: ChangeSet) -> None:
        stack, template = change_set.stack, change_set.template
        parameters = self._deployer.check(stack, template, change_set.given)
        stack.enter("IMPORT_IN_PROGRESS", "User Initiated")
        try:
            import_resources(self._stacks, stack, template, parameters, change_set.imports)
        except FAILURES as error:
            stack.enter("IMPORT_ROLLBACK_COMPLETE", str(error))
        else:
            stack.enter("IMPORT_COMPLETE")

    def _DeleteChangeSet(self, request: _Request) -> _Answer:  # noqa: N802
        self._change_sets = [each for each in self._change_sets if not _is_meant(each, request)]
        return {}

    # What the actions share.

    def _stack(self, request: _Request) -> Stack:
        return self._stacks.get(request["StackName"])

    def _change_set(self, request: _Request) -> ChangeSet:
        for each in reversed(self._change_sets):
            if _is_meant(each, request):
                return each
        raise ApiError(
            "ChangeSetNotFound", f"ChangeSet [{request['ChangeSetName']}] does not exist"
        )

    def _template(self, request: _Request) -> Template:
        if "TemplateURL" not in request:
            return parse_template(request["TemplateBody"])
        return template_at(request["TemplateURL"], self._stacks.api)

    def wait(self) -> None:
        """Wait until the operations on stacks end."""
        for operation in self._operations:
            operation.join()

    def _start(self, operation: Callable[[], None]) -> None:
        thread = threading.Thread(target=operation, daemon=True)
        self._operations.append(thread)
        thread.start()
        thread.join(10)  # the CDK's command line asks again only after five seconds


def _is_meant(change_set: ChangeSet, request: _Request) -> bool:
    stack = request.get("StackName", change_set.stack.name)
    is_named = request["ChangeSetName"] in (change_set.id, change_set.name)
    return is_named and stack in (change_set.stack.name, change_set.stack.id)


def _given_parameters(request: _Request, stack: Stack) -> dict[str, str]:
    given = {}
    for each in request.get("Parameters", []):
        name = each["ParameterKey"]
        if not each.get("UsePreviousValue"):
            given[name] = each.get("ParameterValue", "")
        elif name in stack.given:
            given[name] = stack.given[name]
    return given


def _describe(stack: Stack) -> dict[str, Any]:
    outputs = [
        {
            "OutputKey": output.key,
            "OutputValue": stack.shown(output.value),
            "Description": output.description or None,
            "ExportName": output.export_name,
        }
        for output in stack.outputs
    ]
    declared = stack.template.parameters
    given = {
        name: stack.given.get(name, each.get("Default", "")) for name, each in declared.items()
    }
    return {
        "StackId": stack.id,
        "StackName": stack.name,
        "CreationTime": stack.created,
        "StackStatus": stack.status,
        "StackStatusReason": stack.reason or None,
        "DisableRollback": False,
        "EnableTerminationProtection": stack.termination_protection,
        "Parameters": _pairs(given),
        "Outputs": outputs,
        "Tags": stack.tags,
    }


def _describe_resources(stack: Stack) -> list[dict[str, Any]]:
    # A replaced resource has events too. Its deletion is not the status of its successor.
    present = {
        (name, identifier)
        for name, each in stack.resources.items()
        for identifier in ("", each.physical.id)
    }
    last = {
        each.logical_id: each
        for each in stack.events
        if (each.logical_id, each.physical_id) in present
    }
    return [
        {
            "StackId": stack.id,
            "StackName": stack.name,
            "LogicalResourceId": name,
            "PhysicalResourceId": each.physical.id,
            "ResourceType": each.request.type,
            "ResourceStatus": last[name].status,
            "Timestamp": last[name].timestamp,
            "LastUpdatedTimestamp": last[name].timestamp,
        }
        for name, each in stack.resources.items()
    ]


def _pairs(parameters: dict[str, str]) -> list[dict[str, str]]:
    return [{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()]
