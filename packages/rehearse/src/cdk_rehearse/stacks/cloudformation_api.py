"""The actions of CloudFormation's API that the CDK's command line, and boto3 users, call.

Source: CloudFormation API reference, the action of each name.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable
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
from .descriptions import described, described_events, described_resources, parameter_pairs
from .engine import template_at
from .imports import identifiers, import_resources, imported
from .names import Names
from .stack import Stack, Stacks

_Request = dict[str, Any]
_Answer = dict[str, Any]
_STACK_NAME = re.compile("[a-zA-Z][-a-zA-Z0-9]{0,127}|arn:.*")
_SECONDS_TO_END = 10
"""How long an answer waits for its operation: the CDK's command line asks again only after five
seconds, so most deployments have ended when it asks for the first time."""
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
        self.share_iam: Callable[[Any, Any, Callable[[Any], Any]], Iterable[bytes]] | None = None
        """Answers a request to IAM by asking the services, and passes a change on to the other
        Regions. Default: this is the only Region.
        """
        self._actions: dict[str, Callable[[_Request], _Answer]] = {
            "DescribeStacks": self._describe_stacks,
            "ListStacks": self._list_stacks,
            "GetTemplate": self._get_template,
            "GetTemplateSummary": self._get_template_summary,
            "DescribeStackEvents": self._describe_stack_events,
            "DescribeStackResources": self._describe_stack_resources,
            "ListStackResources": self._list_stack_resources,
            "CreateStack": self._create_stack,
            "DeleteStack": self._delete_stack,
            "ContinueUpdateRollback": self._continue_update_rollback,
            "UpdateTerminationProtection": self._update_termination_protection,
            "CreateChangeSet": self._create_change_set,
            "DescribeChangeSet": self._describe_change_set,
            "ExecuteChangeSet": self._execute_change_set,
            "DeleteChangeSet": self._delete_change_set,
        }

    def answer(self, action: str, request: _Request) -> _Answer:
        """Execute an action; raises ``ApiError`` if it is refused."""
        if action not in self._actions:
            raise ApiError("InvalidAction", f"the action {action} is not simulated")

        name = request.get("StackName", "any")
        if not _STACK_NAME.fullmatch(name):
            raise ApiError(
                "ValidationError", f"stackName {name!r} must match {_STACK_NAME.pattern}"
            )

        try:
            return self._actions[action](request)
        except FAILURES as error:
            raise ApiError("ValidationError", str(error)) from error

    def wait(self) -> None:
        """Wait until the operations on stacks end."""
        for operation in self._operations:
            operation.join()

    # Stacks as they are.

    def _describe_stacks(self, request: _Request) -> _Answer:
        stacks = [self._stack(request)] if "StackName" in request else self._stacks.all
        return {"Stacks": [described(stack) for stack in stacks]}

    def _list_stacks(self, _: _Request) -> _Answer:
        return {"StackSummaries": [described(stack) for stack in self._stacks.all]}

    def _get_template(self, request: _Request) -> _Answer:
        template = self._stack(request).template
        body = template.text or json.dumps(template.body)
        return {"TemplateBody": body, "StagesAvailable": ["Original", "Processed"]}

    def _get_template_summary(self, request: _Request) -> _Answer:
        summaries = identifiers(self._template(request))
        return {"Parameters": [], "ResourceIdentifierSummaries": summaries}

    def _describe_stack_events(self, request: _Request) -> _Answer:
        return {"StackEvents": described_events(self._stack(request))}

    def _describe_stack_resources(self, request: _Request) -> _Answer:
        return {"StackResources": described_resources(self._stack(request))}

    def _list_stack_resources(self, request: _Request) -> _Answer:
        return {"StackResourceSummaries": described_resources(self._stack(request))}

    # Operations on stacks.

    def _create_stack(self, request: _Request) -> _Answer:
        """Answer CreateStack."""
        name = request["StackName"]
        template = self._template(request)
        if self._stacks.find(name) is not None:
            raise ApiError("AlreadyExistsException", f"Stack [{name}] already exists")

        stack = self._stacks.add(name)
        stack.tags = request.get("Tags", [])
        given = _given_parameters(request, stack)
        stack.status = "CREATE_IN_PROGRESS"
        self._start(lambda: self._deployer.deploy(stack, template, given))
        return {"StackId": stack.id}

    def _delete_stack(self, request: _Request) -> _Answer:
        """Answer DeleteStack."""
        stack = self._stacks.find(request["StackName"])
        # To delete what does not exist is no error.
        if stack is None:
            return {}

        if stack.termination_protection:
            raise ApiError(
                "ValidationError", f"Stack [{stack.name}] cannot be deleted while protected"
            )
        _retain(stack, request.get("RetainResources", []))
        stack.status = "DELETE_IN_PROGRESS"
        self._start(lambda: self._deployer.delete(stack))
        return {}

    def _continue_update_rollback(self, request: _Request) -> _Answer:
        stack = self._stack(request)
        resume = self._deployer.resumed_rollback(stack)
        stack.status = "UPDATE_ROLLBACK_IN_PROGRESS"
        self._start(resume)
        return {}

    def _update_termination_protection(self, request: _Request) -> _Answer:
        stack = self._stack(request)
        stack.termination_protection = request["EnableTerminationProtection"]
        return {"StackId": stack.id}

    # Change sets.

    def _create_change_set(self, request: _Request) -> _Answer:
        """Answer CreateChangeSet."""
        template = self._template(request)
        stack = self._stacks.find(request["StackName"])
        if stack is None:
            stack = self._stacks.add(request["StackName"])
            stack.enter("REVIEW_IN_PROGRESS", "User Initiated")
        self._deployer.expect_updatable(stack)

        name = request["ChangeSetName"]
        api = self._stacks.api
        given = _given_parameters(request, stack)
        change_set = ChangeSet(
            id=f"arn:aws:cloudformation:{api.region}:{api.account}:changeSet/{name}/{uuid4()}",
            name=name,
            stack=stack,
            template=template.with_parameters(given),
            given=given,
            tags=request.get("Tags", []),
        )
        if request.get("ChangeSetType") == "IMPORT":
            change_set.imports = imported(request["ResourcesToImport"])
        self._examine(change_set)
        self._change_sets.append(change_set)
        return {"Id": change_set.id, "StackId": stack.id}

    def _examine(self, change_set: ChangeSet) -> None:
        """Find what a change set would change; without any change it has failed."""
        stack = change_set.stack
        template = change_set.template
        parameters = self._deployer.check(stack, template, change_set.given)
        evaluator = Names(self._stacks, stack, parameters, {}).evaluator(template)
        wanted = wanted_resources(template.resources, evaluator)
        change_set.changes = resource_changes(stack, template, parameters, wanted)

        is_new = not stack.resources
        has_other_outputs = template.outputs != stack.template.outputs
        has_other_tags = change_set.tags != stack.tags
        if not (is_new or change_set.changes or has_other_outputs or has_other_tags):
            change_set.fail(_NO_CHANGES)

    def _describe_change_set(self, request: _Request) -> _Answer:
        """Answer DescribeChangeSet."""
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
            "Parameters": parameter_pairs(found.given),
            "Tags": found.tags,
            "Changes": [{"Type": "Resource", "ResourceChange": change} for change in found.changes],
        }

    def _execute_change_set(self, request: _Request) -> _Answer:
        """Answer ExecuteChangeSet."""
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
        """Import the resources of a change set into its stack."""
        stack = change_set.stack
        template = change_set.template
        parameters = self._deployer.check(stack, template, change_set.given)
        stack.enter("IMPORT_IN_PROGRESS", "User Initiated")
        try:
            import_resources(self._stacks, stack, template, parameters, change_set.imports)
        except FAILURES as error:
            stack.enter("IMPORT_ROLLBACK_COMPLETE", str(error))
        else:
            stack.enter("IMPORT_COMPLETE")

    def _delete_change_set(self, request: _Request) -> _Answer:
        self._change_sets = [known for known in self._change_sets if not _is_meant(known, request)]
        return {}

    # What the actions share.

    def _stack(self, request: _Request) -> Stack:
        return self._stacks.get(request["StackName"])

    def _change_set(self, request: _Request) -> ChangeSet:
        for change_set in reversed(self._change_sets):
            if _is_meant(change_set, request):
                return change_set
        raise ApiError(
            "ChangeSetNotFound", f"ChangeSet [{request['ChangeSetName']}] does not exist"
        )

    def _template(self, request: _Request) -> Template:
        if "TemplateURL" in request:
            return template_at(request["TemplateURL"], self._stacks.api)
        return parse_template(request["TemplateBody"])

    def _start(self, operation: Callable[[], None]) -> None:
        thread = threading.Thread(target=operation, daemon=True)
        self._operations.append(thread)
        thread.start()
        thread.join(_SECONDS_TO_END)


def _retain(stack: Stack, names: list[str]) -> None:
    """Let resources stay that a deletion could not delete."""
    if names and stack.status != "DELETE_FAILED":
        raise ApiError("ValidationError", "RetainResources is only for a stack in DELETE_FAILED")
    for name in names:
        stack.resources[name] = replace(stack.resources[name], deletion_policy="Retain")


def _is_meant(change_set: ChangeSet, request: _Request) -> bool:
    """Whether a request names a change set, by its name or its ARN."""
    is_named = request["ChangeSetName"] in (change_set.id, change_set.name)
    stack = request.get("StackName", change_set.stack.name)
    return is_named and stack in (change_set.stack.name, change_set.stack.id)


def _given_parameters(request: _Request, stack: Stack) -> dict[str, str]:
    """The values that a request gives; one without a value keeps that of the stack."""
    given = {}
    for parameter in request.get("Parameters", []):
        name = parameter["ParameterKey"]
        if not parameter.get("UsePreviousValue"):
            given[name] = parameter.get("ParameterValue", "")
        elif name in stack.given:
            given[name] = stack.given[name]
    return given
