"""One create or update of a stack: what is done to each resource,
and what a rollback has to undo.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal

from constructs_triton_core.cloud_assembly.intrinsics import EvaluationBudget, Evaluator, text_of
from constructs_triton_core.cloud_assembly.template import TRANSFORM, Resource, Template

from ..behaviour import Behaviour
from ..errors import FAILURES, StackError, TemplateError
from ..existing import mentions
from ..providers import is_custom
from ..providers.provider import Deployed, Physical, Provider, Request, ResourceFailedError
from ..services.resource_schemas import resource_schema
from ..steps import Step
from .awaited import awaiting
from .engine import Engine, failing
from .exports import expect_exportable, expect_kept
from .names import Names
from .scope import resolve_references
from .service_rules import expect_accepted
from .stack import Output, Stack

RETAINING = ("Retain", "RetainExceptOnCreate")
_Kind = Literal["create", "update", "replace"]


@dataclass
class _Operation:
    """The operation on one resource."""

    kind: _Kind
    request: Request
    current: Deployed | None

    def carry_out(self, provider: Provider) -> Physical:
        if self.kind == "update" and self.current is not None:
            return provider.update(self.current, self.request)
        return provider.create(self.request)


@dataclass
class Change:
    """A create or update in progress; records what to undo and what to delete."""

    engine: Engine
    stack: Stack
    template: Template
    touched: list[str] = field(default_factory=list)
    """Logical ids that were changed, in order; the last one may have failed partly."""
    failed: str = ""
    """The logical ID of the resource that could not be changed."""
    created: list[Deployed] = field(default_factory=list)
    superseded: list[tuple[Deployed, bool]] = field(default_factory=list)
    """Resources that were replaced or are no longer declared, and whether to retain them."""
    budget: EvaluationBudget = field(default_factory=EvaluationBudget)

    def run(self, given: dict[str, str]) -> None:
        """Create, update and replace the resources of a stack as its new template says."""
        parameters = self.engine.check(self.stack, self.template, given)
        self.engine.stacks.identifiers.add_linked_roles()
        behaviour = self.engine.behaviour
        places = order(self.stack.template, behaviour, "cleanup", is_reversed=True)

        self.stack.template = self.template
        self.stack.given = given
        self.stack.parameters = parameters
        evaluator = self._evaluator()
        wanted = wanted_resources(order(self.template, behaviour, "change"), evaluator)
        for condition in sorted(evaluator.assumed):
            self.engine.stacks.api.note_not_simulated("condition", self.stack.name, condition)

        with awaiting(self.engine.stacks.api, self.template, wanted, evaluator) as awaited:
            for logical_id in wanted:
                self._put(self.template.resources[logical_id])
                awaited.arrived(logical_id)

        for logical_id in self.stack.resources.keys() - set(wanted):
            deployed = self.stack.resources.pop(logical_id)
            self.superseded.append((deployed, deployed.deletion_policy in RETAINING))
        self.superseded.sort(key=lambda superseded: places.index(superseded[0].request.logical_id))

        outputs = self._outputs()
        expect_kept(self.engine.stacks, self.stack, outputs)
        expect_exportable(self.engine.stacks, self.stack, outputs)
        self.stack.outputs = outputs

    def _evaluator(self) -> Evaluator:
        stack = self.stack
        names = Names(self.engine.stacks, stack, stack.parameters, stack.resources)
        return names.evaluator(self.template, self.budget)

    def _put(self, resource: Resource) -> None:
        """Create, update or replace one resource as the template declares."""
        current = self.stack.resources.get(resource.logical_id)
        physical_id = "" if current is None else current.physical.id
        try:
            request = self._request(resource)
            operation = self._operation(request, current)
            if operation is None and current is not None:
                self._keep(resource, request, current.physical, current)
                return
            assert operation is not None
            physical = self._carry_out(operation)
        except FAILURES as error:
            status = "CREATE_FAILED" if current is None else "UPDATE_FAILED"
            self.stack.record(resource.logical_id, resource.type, physical_id, status, str(error))
            raise StackError(f"{resource.logical_id}: {error}") from error
        self._keep(resource, request, physical, current)
        status = "CREATE_COMPLETE" if current is None else "UPDATE_COMPLETE"
        self.stack.record(resource.logical_id, resource.type, physical.id, status)
        self.engine.inspect(Step(operation.kind, resource.logical_id, self.stack.path))

    def _request(self, resource: Resource) -> Request:
        """Return what a provider gets of a resource, with all references resolved."""
        given = dict(resource.properties)
        # A transform beside properties may change each of them; the resource is not simulated.
        transform = given.pop(TRANSFORM, None)
        declared = self._evaluator().evaluate(given)
        if transform is not None:
            declared[TRANSFORM] = transform
        properties = resolve_references(declared, self.engine.stacks.api)
        self.engine.stacks.api.stand_ins.remember(properties)
        if self.template.macros and not _is_valid(resource.type, properties):
            # What a macro reads is not what CloudFormation gets.
            properties[TRANSFORM] = list(self.template.macros)
        return Request(
            self.stack.name, self.stack.id, resource.logical_id, resource.type, properties
        )

    def _operation(self, request: Request, current: Deployed | None) -> _Operation | None:
        """Return the operation that a service has to accept; ``None`` if nothing changes."""
        if current is not None and current.request == request:
            return None
        _check_properties(request)
        kind = _kind(request, current)
        expect_accepted(kind, request, current)
        return _Operation(kind, request, current)

    def _carry_out(self, operation: _Operation) -> Physical:
        """Carry out an operation, and record what a rollback has to undo."""
        request = operation.request
        current = operation.current
        self.engine.stacks.api.mentioned.update(mentions(request.properties))
        physical_id = "" if current is None else current.physical.id
        status = "CREATE_IN_PROGRESS" if current is None else "UPDATE_IN_PROGRESS"
        self.stack.record(request.logical_id, request.type, physical_id, status)
        try:
            if operation.kind != "update":
                self.engine.stacks.identifiers.expect_free(request, current, self.engine.stacks.api)
            physical = self._carry_out_or_fail(operation)
        except ResourceFailedError as error:
            # The resource exists although it failed, so the rollback has to find it.
            failed = Deployed(request, error.physical)
            self.engine.stacks.identifiers.add(failed, self.stack.id)
            self.stack.resources[request.logical_id] = failed
            self.created.append(failed)
            raise
        except Exception as error:
            if operation.kind == "update" and current is not None:
                # It may have changed in part, so the rollback changes it back.
                self.stack.resources[request.logical_id] = replace(current, request=request)
                self.touched.append(request.logical_id)
                self.failed = request.logical_id
            if isinstance(error, FAILURES):
                raise
            raise StackError(f"{error!r}") from error
        if current is not None:
            self.touched.append(request.logical_id)
        return physical

    def _carry_out_or_fail(self, operation: _Operation) -> Physical:
        """Carry out an operation; it fails before or after if the behaviour says so."""
        request = operation.request
        provider = self.engine.providers.of(operation.request.type)
        place = f"{self.stack.path}/{request.logical_id}"
        self.engine.before_change(place)
        failure = self.engine.behaviour.failure(
            request.logical_id, self.stack.path, is_custom=is_custom(request.type)
        )
        physical: Physical | None = None
        try:
            with failing(failure):
                physical = operation.carry_out(provider)
            failure = self.engine.after_change(place)
            with failing(failure):
                pass
        except StackError as error:
            if physical is None or operation.kind == "update":
                raise
            if is_custom(request.type) and physical.is_simulated:
                physical = _after_failure(provider, request, has_answer=failure == "answers FAILED")
            raise ResourceFailedError(str(error), physical) from error
        return physical

    def _keep(
        self, resource: Resource, request: Request, physical: Physical, current: Deployed | None
    ) -> None:
        """Note a resource that was carried out, and the one that it replaces."""
        deployed = Deployed(
            request, physical, resource.deletion_policy, resource.update_replace_policy
        )
        self.stack.resources[resource.logical_id] = deployed
        if current is None or current.physical.id != physical.id:
            self.engine.stacks.identifiers.add(deployed, self.stack.id)
            self.created.append(deployed)
            if current is not None:
                self.superseded.append((current, resource.update_replace_policy in RETAINING))

    def _outputs(self) -> list[Output]:
        """Return the outputs of the stack, with their exports."""
        evaluator = self._evaluator()
        outputs = []
        for key, declared in self.template.outputs.items():
            if "Condition" in declared and not evaluator.condition(declared["Condition"]):
                continue
            export = None
            if "Export" in declared:
                export = evaluator.evaluate(declared["Export"]["Name"])
            value = text_of(evaluator.evaluate(declared["Value"]))
            outputs.append(Output(key, value, declared.get("Description", ""), export))
        return outputs


def wanted_resources(names: Iterable[str], evaluator: Evaluator) -> list[str]:
    """The resources that have no condition, or one that holds."""
    wanted = []
    for name in names:
        condition = evaluator.template.resources[name].condition
        if condition is None or evaluator.condition(condition):
            wanted.append(name)
    return wanted


def _kind(request: Request, current: Deployed | None) -> _Kind:
    """Return whether a resource is created, updated or replaced."""
    if current is None:
        return "create"
    if is_custom(request.type):
        if current.properties["ServiceToken"] != request.properties["ServiceToken"]:
            raise StackError("Modifying service token is not allowed.")
        return "update"

    schema = resource_schema(request.type)
    if schema.replacing_changes(current.properties, request.properties):
        return "replace"
    return "update"


def _after_failure(provider: Provider, request: Request, *, has_answer: bool) -> Physical:
    """The physical ID of a custom resource of which the creation failed.

    With the response of its function the ID is lost too. A function that answers FAILED may give
    another ID than after a success: it is asked again, without the properties that it needs.
    """
    if has_answer:
        asked = {"ServiceToken": request.properties["ServiceToken"]}
        try:
            return provider.create(replace(request, properties=asked))
        except StackError as error:
            if isinstance(error, ResourceFailedError):
                return error.physical
    end = provider.api.stand_ins.token(request.stack_name, request.logical_id, 12).upper()
    return Physical(f"{request.stack_name}-{request.logical_id}-{end}")


def _is_valid(type: str, properties: Mapping[str, Any]) -> bool:
    """Whether properties fit the schema of a resource type."""
    try:
        resource_schema(type).check(properties)
    except TemplateError:
        return False
    return True


def _check_properties(request: Request) -> None:
    """Raise the error of properties that CloudFormation refuses before it calls a service."""
    if is_custom(request.type):
        if not request.properties.keys() & {"ServiceToken", TRANSFORM}:
            raise StackError("custom resources need a ServiceToken")
        return
    if TRANSFORM not in request.properties:
        resource_schema(request.type).check(request.properties)


def order(
    template: Template, behaviour: Behaviour, phase: str, *, is_reversed: bool = False
) -> tuple[str, ...]:
    """Logical IDs, each after those that it depends on, or before them; otherwise as declared or
    random.

    In a random order, the next resource is the one with the lowest number among those that could be
    next.
    """
    declared = template.order[::-1] if is_reversed else template.order
    if not behaviour.random_order:
        return declared

    needed = {
        name: resource.references & template.resources.keys()
        for name, resource in template.resources.items()
    }
    sorter = TopologicalSorter(_inverted(needed) if is_reversed else needed)
    try:
        sorter.prepare()
    except CycleError as error:
        if template.unknown_transforms:
            return declared
        raise TemplateError(f"Circular dependency between resources: {error.args[1]}") from None

    ordered: list[str] = []
    ready: list[str] = []
    while sorter.is_active():
        ready = sorted([*ready, *sorter.get_ready()], key=lambda name: behaviour.draw(phase, name))
        following = ready.pop(0)
        ordered.append(following)
        sorter.done(following)
    return tuple(ordered)


def _inverted(needed: Mapping[str, Collection[str]]) -> dict[str, set[str]]:
    """Return the users of each resource, from what each resource needs."""
    users: dict[str, set[str]] = {name: set() for name in needed}
    for user, names in needed.items():
        for name in names:
            users[name].add(user)
    return users
