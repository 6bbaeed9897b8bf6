"""The operations on a stack: create, update, delete, and their rollbacks.

Resources are created one after the other in the order of their dependencies; CloudFormation
creates independent ones at the same time. A replaced resource is deleted when all others have succeeded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .errors import ResourceFailedError, StackError, TemplateError
from .intrinsics import Resolver
from .providers import Providers, is_custom
from .providers.provider import Deployed, Physical, Provider, Request
from .resource_schemas import resource_schema
from .stack import Output, Stack, Stacks
from .template import Resource, Template

__all__ = ["Deployer"]

_RETAINING = ("Retain", "RetainExceptOnCreate")
_SCHEMALESS = ("AWS::CDK::Metadata",)


@dataclass
class Deployer:
    """Carries out operations on the stacks of one loopback AWS."""

    stacks: Stacks
    providers: Providers

    def check(self, stack: Stack, template: Template, given: Mapping[str, str]) -> dict[str, Any]:
        """Check what CloudFormation checks before it creates anything; returns the parameters' values."""
        parameters = self.stacks.read_parameters(template, given)
        resolver = self.stacks.resolver(stack, template, parameters, {})
        for name, rule in template.rules.items():
            if "RuleCondition" in rule and not resolver.holds(rule["RuleCondition"]):
                continue
            for assertion in rule["Assertions"]:
                if not resolver.holds(assertion["Assert"]):
                    raise TemplateError(f"Rule {name}: {assertion.get('AssertDescription', 'does not hold')}")
        for resource in template.resources.values():
            self.providers.of(resource.type)
        for logical_id in template.order:
            self._check_condition(template, logical_id)
        return parameters

    def deploy(self, stack: Stack, template: Template, given: Mapping[str, str]) -> None:
        """Create or update a stack; its status shows the result. A failure is rolled back."""
        if stack.resources:
            self._update(stack, template, dict(given))
        else:
            self._create(stack, template, dict(given))

    def delete(self, stack: Stack) -> None:
        """Delete what is not retained, in reverse order; stops at a resource that cannot be deleted."""
        stack.enter("DELETE_IN_PROGRESS", "User Initiated")
        for deployed in _backwards(stack):
            logical_id = deployed.request.logical_id
            try:
                self._remove(stack, deployed, retain=deployed.deletion_policy in _RETAINING)
            except StackError as error:
                stack.enter(
                    "DELETE_FAILED",
                    f"The following resource(s) failed to delete: [{logical_id}]. {error}",
                )
                return
            del stack.resources[logical_id]
        stack.outputs = []
        stack.enter("DELETE_COMPLETE")

    def _create(self, stack: Stack, template: Template, given: dict[str, str]) -> None:
        stack.enter("CREATE_IN_PROGRESS", "User Initiated")
        change = _Change(self, stack, template)
        try:
            change.run(given)
        except StackError as error:
            stack.enter("ROLLBACK_IN_PROGRESS", str(error))
            self._roll_back_create(stack, str(error))
            return
        stack.enter("CREATE_COMPLETE")

    def _roll_back_create(self, stack: Stack, reason: str) -> None:
        status = "ROLLBACK_COMPLETE"
        for deployed in _backwards(stack):
            try:
                self._remove(stack, deployed, retain=deployed.deletion_policy == "Retain")
            except StackError:
                status = "ROLLBACK_FAILED"
                continue
            del stack.resources[deployed.request.logical_id]
        stack.enter(status, reason)

    def _update(self, stack: Stack, template: Template, given: dict[str, str]) -> None:
        before = _Before.of(stack)
        stack.enter("UPDATE_IN_PROGRESS", "User Initiated")
        change = _Change(self, stack, template)
        try:
            change.run(given)
        except StackError as error:
            self._restore(stack, before, change, str(error))
            return
        self._clean_up(stack, "UPDATE_COMPLETE", change.superseded)

    def _restore(self, stack: Stack, before: _Before, change: _Change, reason: str) -> None:
        """Roll back an update: changed resources get their old properties, new ones are deleted."""
        stack.enter("UPDATE_ROLLBACK_IN_PROGRESS", reason)
        try:
            for logical_id in change.touched:
                old = before.resources.get(logical_id)
                if old is not None:
                    self._put_back(stack, old)
        except StackError as error:
            stack.enter("UPDATE_ROLLBACK_FAILED", str(error))
            return
        before.restore(stack)
        self._clean_up(
            stack, "UPDATE_ROLLBACK_COMPLETE", [(each, False) for each in reversed(change.created)]
        )
        stack.reason = reason

    def _put_back(self, stack: Stack, old: Deployed) -> None:
        """Restore the old physical resource, or change the resource back in place."""
        logical_id, now = old.request.logical_id, stack.resources[old.request.logical_id]
        kind, physical_id = old.request.type, old.physical.id
        is_in_place = now.physical.id == physical_id
        stack.record(logical_id, kind, physical_id, "UPDATE_IN_PROGRESS")
        try:
            if is_in_place or is_custom(kind):
                self.providers.of(kind).update(now, old.request)
        except StackError as error:
            stack.record(logical_id, kind, physical_id, "UPDATE_FAILED", str(error))
            raise
        stack.resources[logical_id] = old
        stack.record(logical_id, kind, physical_id, "UPDATE_COMPLETE")

    def _clean_up(self, stack: Stack, status: str, removals: list[tuple[Deployed, bool]]) -> None:
        """Delete resources that the stack no longer has; a failure is recorded and changes nothing else."""
        if removals:
            stack.enter(f"{status}_CLEANUP_IN_PROGRESS")
        for deployed, retain in removals:
            try:
                self._remove(stack, deployed, retain=retain)
            except StackError:
                continue  # noted in the events, as CloudFormation does
        stack.enter(status)

    def _remove(self, stack: Stack, deployed: Deployed, *, retain: bool) -> None:
        request, physical_id = deployed.request, deployed.physical.id
        if retain:
            stack.record(request.logical_id, request.type, physical_id, "DELETE_SKIPPED")
            return
        stack.record(request.logical_id, request.type, physical_id, "DELETE_IN_PROGRESS")
        try:
            self.providers.of(request.type).delete(deployed)
        except StackError as error:
            stack.record(request.logical_id, request.type, physical_id, "DELETE_FAILED", str(error))
            raise
        stack.record(request.logical_id, request.type, physical_id, "DELETE_COMPLETE")

    def _check_condition(self, template: Template, logical_id: str) -> None:
        condition = template.resources[logical_id].condition
        if condition is not None and condition not in template.conditions:
            raise TemplateError(f"Resources.{logical_id}: condition {condition} is not declared")


@dataclass(frozen=True)
class _Before:
    """The state of a stack before an update, for the rollback."""

    template: Template
    given: dict[str, str]
    parameters: dict[str, Any]
    resources: dict[str, Deployed]
    outputs: list[Output]

    @classmethod
    def of(cls, stack: Stack) -> _Before:
        return cls(stack.template, stack.given, stack.parameters, dict(stack.resources), stack.outputs)

    def restore(self, stack: Stack) -> None:
        stack.template, stack.given, stack.parameters = self.template, self.given, self.parameters
        stack.resources, stack.outputs = dict(self.resources), self.outputs


@dataclass
class _Step:
    """The operation on one resource: ``kind`` is "create", "update" or "replace"."""

    kind: str
    request: Request
    current: Deployed | None

    def carry_out(self, provider: Provider) -> Physical:
        if self.kind == "update" and self.current is not None:
            return provider.update(self.current, self.request)
        if self.kind == "replace":
            self._expect_free_name(provider)
        return provider.create(self.request)

    def _expect_free_name(self, provider: Provider) -> None:
        name = provider.name_property or ""
        given = self.request.properties.get(name)
        if given and self.current is not None and self.current.properties.get(name) == given:
            raise StackError(
                "CloudFormation cannot update a stack when a custom-named resource requires replacing. "
                f"Rename {given} and update the stack again."
            )


@dataclass
class _Change:
    """A create or update in progress; records what to undo and what to delete."""

    deployer: Deployer
    stack: Stack
    template: Template
    touched: list[str] = field(default_factory=list)
    """Logical ids that were changed, in order; the last one may have failed partly."""
    created: list[Deployed] = field(default_factory=list)
    superseded: list[tuple[Deployed, bool]] = field(default_factory=list)
    """Resources that were replaced or are no longer declared, and whether to retain them."""

    def run(self, given: dict[str, str]) -> None:
        parameters = self.deployer.check(self.stack, self.template, given)
        order_before = self.stack.template.order
        self.stack.template, self.stack.given, self.stack.parameters = self.template, given, parameters
        wanted = [name for name in self.template.order if self._is_wanted(self.template.resources[name])]
        for logical_id in wanted:
            self._put(self.template.resources[logical_id])
        for logical_id in self.stack.resources.keys() - set(wanted):
            deployed = self.stack.resources.pop(logical_id)
            self.superseded.append((deployed, deployed.deletion_policy in _RETAINING))
        self.superseded.sort(key=lambda each: order_before.index(each[0].request.logical_id), reverse=True)
        self.stack.outputs = self._outputs()

    def _is_wanted(self, resource: Resource) -> bool:
        return resource.condition is None or self._resolver().condition(resource.condition)

    def _resolver(self) -> Resolver:
        stacks, stack = self.deployer.stacks, self.stack
        return stacks.resolver(stack, self.template, stack.parameters, stack.resources)

    def _put(self, resource: Resource) -> None:
        """Create, update or replace one resource as the template declares."""
        current = self.stack.resources.get(resource.logical_id)
        physical_id = "" if current is None else current.physical.id
        try:
            request = self._request(resource)
            step = self._step(request, current)
            if step is None and current is not None:
                self._keep(resource, request, current.physical, current)
                return
            assert step is not None
            physical = self._carry_out(step)
        except StackError as error:
            status = "CREATE_FAILED" if current is None else "UPDATE_FAILED"
            self.stack.record(resource.logical_id, resource.type, physical_id, status, str(error))
            raise StackError(f"{resource.logical_id}: {error}") from error
        self._keep(resource, request, physical, current)
        status = "CREATE_COMPLETE" if current is None else "UPDATE_COMPLETE"
        self.stack.record(resource.logical_id, resource.type, physical.id, status)

    def _request(self, resource: Resource) -> Request:
        properties = self._resolver().resolve(dict(resource.properties))
        return Request(self.stack.name, self.stack.id, resource.logical_id, resource.type, properties)

    def _step(self, request: Request, current: Deployed | None) -> _Step | None:
        if current is not None and current.request == request:
            return None
        _check_properties(request)
        if current is None:
            return _Step("create", request, None)
        return _Step("replace" if _has_to_be_replaced(current, request) else "update", request, current)

    def _carry_out(self, step: _Step) -> Physical:
        request, current = step.request, step.current
        physical_id = "" if current is None else current.physical.id
        status = "CREATE_IN_PROGRESS" if current is None else "UPDATE_IN_PROGRESS"
        self.stack.record(request.logical_id, request.type, physical_id, status)
        try:
            physical = step.carry_out(self.deployer.providers.of(request.type))
        except ResourceFailedError as error:
            # It is there although it failed, so that the rollback has to find it.
            failed = Deployed(request, Physical(error.physical_id))
            self.stack.resources[request.logical_id] = failed
            self.created.append(failed)
            raise
        except Exception as error:
            if step.kind == "update" and current is not None:  # what was half changed is changed back
                self.stack.resources[request.logical_id] = replace(current, request=request)
                self.touched.append(request.logical_id)
            raise error if isinstance(error, StackError) else StackError(f"{error!r}") from error
        if current is not None:
            self.touched.append(request.logical_id)
        return physical

    def _keep(
        self, resource: Resource, request: Request, physical: Physical, current: Deployed | None
    ) -> None:
        deployed = Deployed(request, physical, resource.deletion_policy, resource.update_replace_policy)
        self.stack.resources[resource.logical_id] = deployed
        if current is None or current.physical.id != physical.id:
            self.created.append(deployed)
            if current is not None:
                self.superseded.append((current, resource.update_replace_policy in _RETAINING))

    def _outputs(self) -> list[Output]:
        resolver = self._resolver()
        outputs = []
        for key, each in self.template.outputs.items():
            if "Condition" in each and not resolver.condition(each["Condition"]):
                continue
            export = resolver.resolve(each["Export"]["Name"]) if "Export" in each else None
            value = str(resolver.resolve(each["Value"]))
            outputs.append(Output(key, value, each.get("Description", ""), export))
        return outputs


def _has_to_be_replaced(current: Deployed, request: Request) -> bool:
    if current.request.type != request.type:
        return True
    if is_custom(request.type):
        if current.properties["ServiceToken"] != request.properties["ServiceToken"]:
            raise StackError("Modifying service token is not allowed.")
        return False
    if request.type in _SCHEMALESS:
        return False
    return bool(resource_schema(request.type).replacing_changes(current.properties, request.properties))


def _check_properties(request: Request) -> None:
    if request.type in _SCHEMALESS:
        return
    if is_custom(request.type):
        if "ServiceToken" not in request.properties:
            raise StackError("custom resources need a ServiceToken")
        return
    resource_schema(request.type).check(request.properties)


def _backwards(stack: Stack) -> list[Deployed]:
    """The stack's resources, each before the resources that it depends on."""
    order = {logical_id: place for place, logical_id in enumerate(stack.template.order)}
    resources = stack.resources.values()
    return sorted(resources, key=lambda each: order.get(each.request.logical_id, -1), reverse=True)
