"""Asserts that a change of a stack replaces and deletes nothing that should be kept."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from aws_cdk.assertions import Template

from constructs_triton.testing.argument_types import listed_names
from constructs_triton.testing.flat_resources import FlatResources
from constructs_triton.testing.stable_templates import stable_template
from constructs_triton.testing.synthesized_stack import Source, synthesized_source
from constructs_triton_core.cloud_assembly.template import references, value_at
from constructs_triton_core.errors import InvalidValueError, MissingDependencyError
from constructs_triton_core.untrusted.regular_files import read_json

REPLACED_BY_DESIGN = (
    "AWS::SageMaker::Model",
    "AWS::SageMaker::EndpointConfig",
    "AWS::IAM::ManagedPolicy",
)
# Which properties cause a replacement is the same in every Region.
_REGION = "us-east-1"

StableTemplate = Mapping[str, Any]


def assert_no_replacement(
    before: Source | StableTemplate,
    after: Source | StableTemplate,
    *,
    allowed: Collection[str] = REPLACED_BY_DESIGN,
) -> None:
    """Check that an update from ``before`` to ``after`` replaces and deletes no resource.

    CloudFormation replaces a resource if a property changes that can be set only at creation, and
    if its logical ID changes. The properties come from CloudFormation's resource schemas, which
    cfn-lint contains. A resource that refers to a replaced one in such a property is replaced too.
    Custom resources are not compared, because their function decides. New content of models is no
    change.

    Args:
        before: the stack as deployed: a stack with its nested stacks, an app, a construct of a
            stack, a ``Template`` of ``aws_cdk.assertions``, a stable template, or the path of a
            template, of the folder of a cloud assembly or of a snapshot.
        after: the changed stack, or the changed app.
        allowed: CloudFormation types and logical IDs that may be replaced or deleted (default:
            models and endpoint configurations, which SageMaker cannot change, and the managed
            policies of endpoints, which this library replaces on purpose).

    Raises:
        AssertionError: a resource would be replaced or deleted. The message names the properties.
        MissingDependencyError: cfn-lint is not installed.
        InvalidValueError: a stack is in no app, a template cannot be read, the template of a nested
            stack that has changed is not known, an argument has the wrong type, or one side is an
            app and the other is not.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    allowed = listed_names("allowed", allowed, "AWS::S3::Bucket")
    old_template = _template(before)
    new_template = _template(after)
    if _is_app(old_template) != _is_app(new_template):
        raise InvalidValueError(
            "before, after: must be two stacks or two apps, got one of each; pass the stack of the "
            "app"
        )

    old_resources = _resources(old_template)
    new_resources = _resources(new_template)
    _check_nested(old_resources, new_resources)

    old = old_resources.existing
    lines = []
    for name, reason in _lost(old, new_resources).items():
        resource_type = old[name]["Type"]
        logical_id = name.rpartition("/")[2]
        if not {name, logical_id, resource_type} & set(allowed):
            lines.append(f"  {resource_type} {name} {reason}")
    if lines:
        listed = "\n".join(lines)
        raise AssertionError(
            f"the update would replace or delete {len(lines)} of {len(old)} resources; undo the "
            f"change, or add a type or a logical ID to `allowed`\n{listed}"
        )


def _resources(template: StableTemplate) -> FlatResources:
    return FlatResources.of_app(template) if _is_app(template) else FlatResources.of(template)


def _is_app(template: StableTemplate) -> bool:
    """Return whether these are the stable templates of an app, by the IDs of its stacks."""
    return bool(template) and all(
        isinstance(stack, Mapping) and "Resources" in stack for stack in template.values()
    )


def _template(source: Source | StableTemplate) -> StableTemplate:
    """Return the stable template of a stack, or those of an app by the stacks' IDs."""
    if isinstance(source, Mapping):
        if source and "Resources" not in source and not _is_app(source):
            raise InvalidValueError(
                "before, after: must be stable templates, got a mapping without Resources; "
                "write stable_template(stack)"
            )
        return source
    if isinstance(source, Template):
        # It has no names for its assets. Their digests are in properties that replace nothing, or
        # in types that are allowed.
        (stack,) = synthesized_source(source).stacks.values()
        body: StableTemplate = stack.stack.template.body
        return body
    if isinstance(source, Path | str) and not _is_template(Path(source)):
        found: StableTemplate = _snapshot(Path(source))
        return found
    return stable_template(source)


def _is_template(path: Path) -> bool:
    return path.is_dir() or ".template." in path.name


def _check_nested(old: FlatResources, new: FlatResources) -> None:
    """Refuse nested stacks of which only the address is known, and the address has changed.

    Raises:
        InvalidValueError: there is one.
    """
    for name in sorted(old.unread.keys() | new.unread.keys()):
        if name not in old.existing or name not in new.existing:
            continue
        # The address of a template of the CDK contains the digest of the template. Snapshots of
        # older versions have a name in place of the digest.
        address = json.dumps(old.unread.get(name))
        is_equal = address == json.dumps(new.unread.get(name, ""))
        if is_equal and "<template:" not in address:
            continue
        raise InvalidValueError(
            f"{name}: the template of this nested stack is not known, and it may have changed; "
            "pass the stacks themselves, or run `pytest --snapshot-update`"
        )


def _snapshot(path: Path) -> Any:
    try:
        return read_json(path)
    except (OSError, ValueError) as error:
        raise InvalidValueError(
            f"{path}: cannot be read ({error}); "
            "pass a snapshot of TritonTemplateExtension, or a stack"
        ) from None


def _lost(old: Mapping[str, Any], after: FlatResources) -> dict[str, str]:
    """Return why each replaced or deleted resource is lost, by its name."""
    new = after.existing
    lost = {name: _deleted(name, old, after) for name in old if name not in new}
    changes = {name: _Change(old[name], new[name]) for name in old if name in new}

    # A replaced resource can cause the replacement of others that refer to it, and these of others.
    replaced: set[str] = set()
    while True:
        found = {}
        for name, change in changes.items():
            if name in replaced:
                continue
            reasons = list(change.reasons(replaced))
            if reasons:
                found[name] = f"would be replaced: {'; '.join(reasons)}"
        if not found:
            return lost
        replaced.update(found)
        lost.update(found)


def _deleted(name: str, old: Mapping[str, Any], after: FlatResources) -> str:
    """Return why a resource of ``old`` is deleted."""
    if name in after.absent:
        return f"would be deleted: its condition {after.absent[name]} is false"

    resource_type = old[name]["Type"]
    added = [
        other
        for other, resource in after.existing.items()
        if other not in old and resource["Type"] == resource_type
    ]
    if added:
        return f"would be deleted, and {added[0]} created: the id of its construct has changed"
    return "would be deleted"


@dataclass(frozen=True)
class _Change:
    """A resource that both versions have, before and after the update."""

    old: Mapping[str, Any]
    new: Mapping[str, Any]

    def reasons(self, replaced: Collection[str]) -> Iterator[str]:
        """Yield why CloudFormation would replace the resource;
        ``replaced`` are others that it replaces.
        """
        if self.old["Type"] != self.new["Type"]:
            yield f"its type was {self.old['Type']} and is {self.new['Type']}"
            return
        for path in _create_only(self.old["Type"]):
            before = value_at(self.old.get("Properties", {}), path)
            now = value_at(self.new.get("Properties", {}), path)
            if before != now:
                yield f"{'.'.join(path)} was {_short(before)} and is {_short(now)}"
            elif referred := sorted(references(now) & set(replaced)):
                yield f"{'.'.join(path)} refers to {referred[0]}, which would be replaced"


@cache
def _create_only(resource_type: str) -> Sequence[tuple[str, ...]]:
    """Return the paths of the properties of a type that can be set only at creation.

    Raises:
        MissingDependencyError: cfn-lint is not installed.
    """
    if resource_type.startswith(("Custom::", "AWS::CloudFormation::CustomResource")):
        return ()
    try:
        from cfnlint.schema import ResourceNotFoundError
        from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER
    except ImportError as error:
        raise MissingDependencyError(
            f"assert_no_replacement: cfn-lint is not installed ({error}); "
            "run `pip install 'constructs-triton[testing]'`"
        ) from None
    try:
        schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(_REGION, resource_type).schema
    except ResourceNotFoundError:  # a type of a registry of your own
        return ()
    # A path in a schema begins with "/properties/".
    return [tuple(path.split("/")[2:]) for path in schema.get("createOnlyProperties") or ()]


def _short(value: Any) -> str:
    text = "not set" if value is None else json.dumps(value, sort_keys=True)
    return text if len(text) <= 100 else f"{text[:100]}…"
