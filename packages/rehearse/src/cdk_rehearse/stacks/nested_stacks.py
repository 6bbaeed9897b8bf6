"""Nested stacks: ``AWS::CloudFormation::Stack`` with a template in S3."""

from __future__ import annotations

from constructs_triton_core.cloud_assembly.intrinsics import text_of
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_core.cloud_assembly.unknown_values import like

from ..errors import FAILURES, StackError
from ..providers.provider import Deployed, Physical, Provider, Request, ResourceFailedError
from .deployment import Deployer
from .engine import template_at
from .stack import Stack

_MOST_DEEP = 16


class NestedStack(Provider):
    """Deploys the template of a nested stack as a part of the operation on its parent."""

    type = "AWS::CloudFormation::Stack"
    name_limit = 128

    def __init__(self, deployer: Deployer) -> None:
        super().__init__(deployer.stacks.api)
        self._deployer = deployer
        self._depth = 0

    def create(self, request: Request) -> Physical:
        """Create the nested stack; raises if it fails."""
        template = self._template(request)
        if self._depth == _MOST_DEEP:
            raise StackError(
                f"stacks are nested more than {_MOST_DEEP} deep; is one nested in itself?"
            )
        parent = self._deployer.stacks.get(request.stack_id)
        stack = self._deployer.stacks.add(self.name(request))
        stack.path = f"{parent.path}/{request.logical_id}"
        self._depth += 1
        try:
            self._deployer.deploy(stack, template, _parameters(request))
        except FAILURES as error:
            stack.enter("ROLLBACK_COMPLETE", str(error))
        finally:
            self._depth -= 1
        if stack.status != "CREATE_COMPLETE":
            reason = f"Embedded stack {stack.id} was not successfully created: {stack.reason}"
            raise ResourceFailedError(reason, Physical(stack.id))
        return _physical(stack)

    def update(self, current: Deployed, request: Request) -> Physical:
        """Update the stack, or undo its update in a rollback of the parent."""
        stack = self._deployer.stacks.get(current.physical.id)
        if not self._deployer.undo_nested(stack):
            self._deployer.update_nested(stack, self._template(request), _parameters(request))
        if stack.status.endswith("ROLLBACK_FAILED"):
            raise StackError(f"Embedded stack {stack.id} was not rolled back: {stack.reason}")
        return _physical(stack)

    def delete(self, current: Deployed) -> None:
        stack = self._deployer.stacks.get(current.physical.id)
        self._deployer.delete(stack)
        if stack.status != "DELETE_COMPLETE":
            raise StackError(f"Embedded stack {stack.id} was not deleted: {stack.reason}")

    def _template(self, request: Request) -> Template:
        return template_at(str(request.properties["TemplateURL"]), self.api)


def _parameters(request: Request) -> dict[str, str]:
    given = request.properties.get("Parameters", {})
    return {
        name: like(value, ",".join(value)) if isinstance(value, list) else text_of(value)
        for name, value in given.items()
    }


def _physical(stack: Stack) -> Physical:
    return Physical(
        stack.id, {f"Outputs.{name}": value for name, value in stack.output_values.items()}
    )
