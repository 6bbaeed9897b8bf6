"""What an update does to data, computed from the two versions alone; nothing is deployed.

So the answer does not depend on a step that is refused: lost data is known also then.

Sources: CloudFormation template reference, DeletionPolicy and UpdateReplacePolicy attributes; the
resource schemas (``createOnlyProperties``, ``conditionalCreateOnlyProperties``); the CDK's handlers
of custom resources in aws-cdk-lib.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from constructs_triton_core.cloud_assembly.synthesized_stack import (
    NESTED_STACK_TYPE,
    SynthesizedStack,
)
from constructs_triton_core.cloud_assembly.template import (
    Resource,
    Template,
    references,
    value_at,
)
from constructs_triton_core.errors import TemplateError

from ..services.resource_schemas import resource_schema
from .custom_resource_ids import IdChange, deleted_destination, id_change
from .data_types import (
    emptying_type,
    holds_data,
    is_emptied,
    is_emptied_by_removal,
    is_protected,
    shorter_retention,
)
from .versions import Version

__all__ = ["DataChange", "DataChanges", "Fate", "data_changes"]

_POLICIES = ("DeletionPolicy", "UpdateReplacePolicy")
_RETAINING = ("Retain", "RetainExceptOnCreate")
#: The endings of attributes that are other ones after a replacement.
_NAMES = ("Arn", "Id", "Name")
#: The types that CloudFormation snapshots before a deletion if the template has no policy; of an
#: instance, only one that belongs to no cluster. Source: template reference, DeletionPolicy.
_SNAPSHOT_BY_DEFAULT = ("AWS::RDS::DBCluster", "AWS::RDS::DBInstance")

Kind = Literal[
    "removed",
    "may be removed",
    "replaced",
    "emptied",
    "may be replaced",
    "may be emptied",
    "expires",
    "unprotected",
    "new id",
]
"""What happens to the resource."""
Fate = Literal["lost", "kept", "snapshot", "kept if not empty", "unknown"]
"""What becomes of its data; unknown if a function decides the policy."""


@dataclass(frozen=True)
class DataChange:
    """A change of one resource with data, or of a custom resource whose physical ID changes.

    Args:
        stack: Name of the stack; of a nested stack, with the logical IDs that lead to it.
        logical_id: Logical ID of the resource.
        type: Its type.
        kind: What happens to it.
        fate: What becomes of its data.
        causes: The properties or attributes that cause it, each in the words of the template.
        has_successor: Whether an empty resource of its type takes its place.
    """

    stack: str
    logical_id: str
    type: str
    kind: Kind
    fate: Fate = "lost"
    causes: tuple[str, ...] = ()
    has_successor: bool = True


@dataclass(frozen=True)
class DataChanges:
    """All changes of data, and the other resources that may be replaced.

    Args:
        changes: Those of resources with data, in the order of the stacks and templates.
        may_be_replaced: Stack, logical ID and properties of each resource without data that
            CloudFormation may replace.
    """

    changes: tuple[DataChange, ...] = ()
    may_be_replaced: tuple[tuple[str, str, tuple[str, ...]], ...] = ()


def data_changes(old: Version, new: Version) -> DataChanges:
    """Compare two versions.

    A stack that the new version does not have is deleted.

    Args:
        old: The deployed version.
        new: The version to deploy.
    """
    before = {each.name: each for each in _with_nested(old)}
    after = {each.name: each for each in _with_nested(new)}
    pairs = [_Pair(stack, after.get(name), before) for name, stack in before.items()]
    created = {
        kind for name, stack in after.items() for kind in _new_types(stack, before.get(name))
    }

    changes = [
        replace(change, has_successor=change.has_successor or change.type in created)
        for pair in pairs
        for change in pair.changes()
    ]
    # What the template retains needs no word, unless an empty resource takes its place.
    seen = [each for each in changes if each.fate != "kept" or each.has_successor]
    others = [
        (pair.old.name, logical_id, causes)
        for pair in pairs
        for logical_id, causes in pair.may_be_replaced()
    ]
    return DataChanges(tuple(seen), tuple(others))


def _with_nested(version: Version) -> Iterator[SynthesizedStack]:
    for stack in version.stacks:
        yield from stack.synthesized()


def _new_types(stack: SynthesizedStack, former: SynthesizedStack | None) -> Iterator[str]:
    """The types of the resources that an update creates, without those of replacements."""
    known = {} if former is None else former.existing()
    for name, each in stack.existing().items():
        # A new key does not take the place of another one: what that has encrypted stays as it is.
        if name not in known and each.type != "AWS::KMS::Key":
            yield each.type


@dataclass(frozen=True)
class _Pair:
    """One stack before and after the update; ``siblings`` are all stacks before it."""

    old: SynthesizedStack
    new: SynthesizedStack | None
    siblings: Mapping[str, SynthesizedStack]

    def changes(self) -> Iterator[DataChange]:
        for name, resource in self.old.existing().items():
            if name not in self._after:
                yield from self._removed(resource)
                yield from self._deployment(resource, None)
            elif self._after[name].type == resource.type:
                yield from self._changed(resource, self._after[name])

    def may_be_replaced(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The resources without data that CloudFormation may replace, by their schema alone."""
        for name in self._possible:
            if not self._holds_data(name):
                schema = resource_schema(self._before[name].type)
                causes = schema.possibly_replacing_changes(self._old(name), self._new(name))
                if causes:
                    yield name, tuple(sorted(causes))

    @cached_property
    def _before(self) -> Mapping[str, Resource]:
        return self.old.existing()

    @cached_property
    def _after(self) -> Mapping[str, Resource]:
        return {} if self.new is None else self.new.existing()

    def _removed(self, resource: Resource) -> Iterator[DataChange]:
        if not self._holds_data(resource.logical_id):
            return
        policy = self._deletion_policy(resource)
        fate = self._fate(resource, policy)
        kind: Kind = "removed"
        if self.new is not None and _has_transform(self.new.template):
            kind = "may be removed"
        yield self._change(resource, kind, fate, has_successor=False)

    def _changed(self, old: Resource, new: Resource) -> Iterator[DataChange]:
        name = old.logical_id
        if is_custom_resource(old.type):
            found = self._id_change(name)
            if found is not None:
                causes = (found.before, found.after, found.deletes)
                yield self._change(old, "new id", causes=causes)
            yield from self._deployment(old, self._new(name))
            return
        if not self._holds_data(name):
            return

        if name in self._certain:
            if _keeps_its_name(old.type, self._old(name), self._new(name)):
                return
            fate = self._fate(old, _policy(self.new, new, "UpdateReplacePolicy"))
            yield self._change(old, "replaced", fate, self._certain[name])
            return
        if name in self._possible:
            fate = self._fate(old, _policy(self.new, new, "UpdateReplacePolicy"))
            yield self._change(old, "may be replaced", fate, self._possible[name])
        if self._is_emptied(old):
            yield self._change(old, "emptied")
        shorter = shorter_retention(old.type, self._old(name), self._new(name))
        if shorter:
            yield self._change(old, "expires", causes=(shorter,))
        lifted = [each for each in _POLICIES if self._loses_protection(old, new, each)]
        if lifted:
            yield self._change(old, "unprotected", causes=tuple(lifted))

    def _deployment(
        self, resource: Resource, new: Mapping[str, Any] | None
    ) -> Iterator[DataChange]:
        """A change of what the CDK deploys to a bucket, which deletes objects of a bucket that
        stays.
        """
        found = deleted_destination(resource.type, self._old(resource.logical_id), new)
        if found is None:
            return
        bucket, prefix = found
        buckets = {
            self.old.name_of(name): name
            for name, each in self._before.items()
            if each.type == "AWS::S3::Bucket"
        }
        if self.new is not None and buckets.get(str(bucket), "") in {"", *self._after}:
            yield self._change(resource, "may be emptied", causes=(f"{bucket}/{prefix}",))

    def _is_emptied(self, resource: Resource) -> bool:
        """Whether the update empties a resource that stays, by removing what empties it."""
        if self.new is None or not emptying_type(resource.type):
            return False
        if not self._empties(self.old, self._before, resource):
            return False

        name = resource.logical_id
        is_removed = not self._empties(self.new, self._after, self._after[name])
        return is_removed and is_emptied_by_removal(resource.type, self._old(name), self._new(name))

    def _empties(
        self, stack: SynthesizedStack, resources: Mapping[str, Resource], resource: Resource
    ) -> bool:
        """Whether a version has a custom resource that empties the resource at its deletion."""
        others = ((each.type, _known(stack, name)) for name, each in resources.items())
        return is_emptied(resource.type, resource.logical_id, {}, others, stack.name_of)

    def _loses_protection(self, old: Resource, new: Resource, attribute: str) -> bool:
        """Whether a policy keeps the data before the update, and deletes it afterwards."""
        keeping = (*_RETAINING, "Snapshot")
        before = _policy(self.old, old, attribute)
        after = _policy(self.new, new, attribute)
        return before in keeping and after == "Delete"

    def _id_change(self, name: str) -> IdChange | None:
        kind = self._before[name].type
        return id_change(kind, name, self._old(name), self._new(name))

    def _change(
        self,
        resource: Resource,
        kind: Kind,
        fate: Fate = "lost",
        causes: tuple[str, ...] = (),
        *,
        has_successor: bool = True,
    ) -> DataChange:
        place = self.old.name, resource.logical_id, resource.type
        return DataChange(*place, kind, fate, causes, has_successor)

    def _fate(self, resource: Resource, policy: str) -> Fate:
        """What becomes of the data of a resource that is deleted under a policy."""
        properties = self._old(resource.logical_id)
        if policy in _RETAINING or is_protected(properties):
            return "kept"
        if policy == "Snapshot":
            return "snapshot"
        if policy != "Delete":
            return "unknown"
        others = ((each.type, self._old(each.logical_id)) for each in self._before.values())
        is_lost = is_emptied(
            resource.type, resource.logical_id, properties, others, self.old.name_of
        )
        return "lost" if is_lost else "kept if not empty"

    def _deletion_policy(self, resource: Resource) -> str:
        """The policy of a resource that is no longer declared: of the stack that is deleted too.

        A nested stack that its parent retains is kept as a whole.
        """
        parent, _, name = self.old.name.rpartition("/")
        outer = self.siblings.get(parent)
        if self.new is None and outer is not None and name in outer.template.resources:
            policy = _policy(outer, outer.template.resources[name], "DeletionPolicy")
            if policy in _RETAINING:
                return policy
        return _policy(self.old, resource, "DeletionPolicy")

    def _holds_data(self, name: str) -> bool:
        resource = self._before[name]
        return holds_data(resource.type, self._old(name))

    def _old(self, name: str) -> Mapping[str, Any]:
        return _known(self.old, name)

    def _new(self, name: str) -> Mapping[str, Any]:
        return {} if self.new is None else _known(self.new, name)

    @cached_property
    def _certain(self) -> Mapping[str, tuple[str, ...]]:
        """The properties that replace each resource, in an order in which causes come first."""
        return self._replacements[0]

    @cached_property
    def _possible(self) -> Mapping[str, tuple[str, ...]]:
        """The properties that may replace each resource that nothing replaces for certain."""
        return self._replacements[1]

    @cached_property
    def _replacements(
        self,
    ) -> tuple[Mapping[str, tuple[str, ...]], Mapping[str, tuple[str, ...]]]:
        certain: dict[str, tuple[str, ...]] = {}
        possible: dict[str, tuple[str, ...]] = {}
        for name in self._order():
            old, new = self._before.get(name), self._after.get(name)
            if old is None or new is None or old.type != new.type:
                continue
            found = self._causes(old, new, certain.keys(), possible.keys())
            if found[True]:
                certain[name] = tuple(sorted(found[True]))
            elif found[False]:
                possible[name] = tuple(sorted(found[False]))
        return certain, possible

    def _order(self) -> tuple[str, ...]:
        if self.new is None:
            return ()
        try:
            return self.new.template.order
        except TemplateError:  # a circle, which CloudFormation refuses
            return tuple(self._after)

    def _causes(
        self, old: Resource, new: Resource, certain: Any, possible: Any
    ) -> dict[bool, set[str]]:
        """The properties that replace a resource for certain, and those that may do so."""
        found: dict[bool, set[str]] = {True: set(), False: set()}
        if is_custom_resource(new.type) or new.type == NESTED_STACK_TYPE:
            return found
        try:
            schema = resource_schema(new.type)
        except TemplateError:  # CloudFormation does not have the type
            return found

        name = new.logical_id
        for cause in schema.replacing_changes(self._old(name), self._new(name)):
            is_certain = _differs_for_certain(old.properties.get(cause), new.properties.get(cause))
            found[is_certain].add(cause)
        found[False] |= schema.possibly_replacing_changes(self._old(name), self._new(name))
        found[False] -= found[True]

        # The name of a resource that is replaced is another one, and so is what contains it.
        for cause in schema.create_only - found[True]:
            used = references(new.properties.get(cause))
            if used & set(certain):
                found[_is_name(new.properties.get(cause), set(certain))].add(cause)
            elif used & set(possible):
                found[False].add(cause)
        return found


def _has_transform(template: Template) -> bool:
    """Whether a macro of AWS, such as that of SAM, adds resources to a template.

    A deployed stack has the template with these resources.
    """
    given = template.body.get("Transform") or []
    transforms = given if isinstance(given, list) else [given]
    return any(each != "AWS::LanguageExtensions" for each in transforms)


def is_custom_resource(type: str) -> bool:
    """Whether this is the type of a custom resource."""
    return type.startswith("Custom::") or type == "AWS::CloudFormation::CustomResource"


def _known(stack: SynthesizedStack, name: str) -> Mapping[str, Any]:
    """The properties of a resource; none if they have a form that CloudFormation refuses."""
    try:
        return stack.known_properties(name)
    except TemplateError:
        return {}


def _keeps_its_name(type: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a template gives a resource the same name again.

    CloudFormation then refuses to replace it: "cannot update a stack when a custom-named resource
    requires replacing".
    """
    paths, required = resource_schema(type).identifying
    names = [(value_at(old, path), value_at(new, path)) for path in paths[:required]]
    return bool(names) and all(isinstance(a, str) and a == b for a, b in names)


def _policy(stack: SynthesizedStack | None, resource: Resource, attribute: str) -> str:
    """The policy of a resource; empty if a function decides it."""
    assert stack is not None
    declared = stack.template.body["Resources"][resource.logical_id].get(attribute)
    if declared is None:
        is_member = "DBClusterIdentifier" in resource.properties
        is_snapshot = resource.type in _SNAPSHOT_BY_DEFAULT and not is_member
        return "Snapshot" if is_snapshot and attribute == "DeletionPolicy" else "Delete"
    return declared if isinstance(declared, str) else ""


def _differs_for_certain(old: Any, new: Any) -> bool:
    """Whether two declared values that differ have different values in AWS too.

    A name that a template gives may be the one that a resource has, or that another stack exports.
    """
    if _has_import(old) or _has_import(new):
        return False
    return bool(references(old)) == bool(references(new)) or old is None or new is None


def _has_import(value: Any) -> bool:
    if isinstance(value, Mapping):
        names = ("Fn::ImportValue", "Fn::GetStackOutput")
        return any(name in value for name in names) or any(map(_has_import, value.values()))
    return isinstance(value, list) and any(map(_has_import, value))


def _is_name(value: Any, replaced: set[str]) -> bool:
    """Whether a value contains the physical ID, the ARN or the name of one of these resources."""
    match value:
        case {"Ref": str(name)}:
            return name in replaced
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return name in replaced and attribute.endswith(_NAMES)
        case {"Fn::GetAtt": str(target)}:
            name, _, attribute = target.partition(".")
            return name in replaced and attribute.endswith(_NAMES)
        case Mapping():
            return any(_is_name(each, replaced) for each in value.values())
        case list():
            return any(_is_name(each, replaced) for each in value)
    return False
