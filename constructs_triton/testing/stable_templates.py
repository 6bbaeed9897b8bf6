"""Templates for snapshots, in which new content of the models changes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from constructs_triton.testing.asset_names import StableNames
from constructs_triton.testing.synthesized_stack import (
    Source,
    StackInFolder,
    synthesized_source,
)
from constructs_triton_core.cloud_assembly.synthesized_stack import NESTED_STACK_TYPE
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_core.errors import InvalidValueError, TemplateError

DIGESTS = "Digests"
#: The member of a nested stack's resource that has the nested stack's own stable template.
NESTED_TEMPLATE = "Template"
# What the CDK adds to every template; it changes with the CDK's release.
_ADDED_BY_THE_CDK = {
    "Parameters": ("BootstrapVersion",),
    "Rules": ("CheckBootstrapVersion",),
    "Resources": ("CDKMetadata",),
    "Conditions": ("CDKMetadataAvailable",),
}
# Metadata that the CDK's command line asks for, so that tests do not see it.
_METADATA_OF_THE_CDK = ("aws:cdk:", "aws:asset:")
_ARN_LISTS = ("Resource", "NotResource")


def stable_template(stack: Source, *, digests: bool = False) -> dict[str, Any]:
    """Return the template of a stack with names in place of digests.

    The resource of a nested stack has the nested template in ``Template``. Of an app, or of the
    folder of a cloud assembly, the result has the template of each stack by its ID.

    An archive's key becomes ``<archive:digits>``, a Lambda function's code ``<asset:ModelSync>``,
    an image ``<image:App>``. What the CDK adds for itself is left out: its bootstrap version, its
    metadata resource, and the paths of constructs. Accounts, Regions and everything else are
    unchanged.

    Args:
        stack: a stack or an app, which is synthesized, a construct of a stack, which stands for
            the stack, or the path of a template or a folder that ``cdk synth`` wrote.
        digests: whether to add the digest of each asset in a section ``Digests``, so that new
            content of a model changes one line (default: no line).

    Raises:
        InvalidValueError: the stack is in no app, the template cannot be read, or ``stack`` is a
            ``Template`` of ``aws_cdk.assertions``, which has no assets and no nested stacks.
    """
    source = synthesized_source(stack)
    templates = {name: _stable(member, digests) for name, member in source.stacks.items()}
    if source.is_app:
        return templates
    (template,) = templates.values()
    return template


def _stable(stack: StackInFolder, digests: bool) -> dict[str, Any]:
    """Return the stable template of one stack, with its ``Digests`` if they are wanted.

    Raises:
        InvalidValueError: it is a ``Template`` object.
    """
    if stack.folder is None:
        raise InvalidValueError(
            "stack: a Template does not know its assets, so their digests would be in the snapshot;"
            " pass the stack in place of Template.from_stack(stack)"
        )
    template = _with_nested(stack, stack.folder, frozenset())
    if not digests:
        return template

    # The manifest can have assets of other stacks too.
    text = json.dumps(template)
    digest_of = StableNames.of(stack.stack).digests
    used = {name: digest for name, digest in digest_of.items() if name in text}
    return {**template, DIGESTS: used}


def _with_nested(stack: StackInFolder, folder: Path, outer: frozenset[str]) -> dict[str, Any]:
    """Return the stable template of a stack, with those of its nested stacks.

    ``outer`` are the files of the stacks that it is nested in.
    """
    synthesized = stack.stack
    names = StableNames.of(synthesized)
    template: dict[str, Any] = _in_order(names.replace(_without_cdk(synthesized.template.body)))
    for logical_id, resource in synthesized.template.resources_of_type(NESTED_STACK_TYPE).items():
        # A digest in a logical ID, as of a Lambda version, has been replaced.
        shown = template["Resources"][names.replace(logical_id)]
        file = synthesized.nested_template(logical_id)
        if file is None:
            continue
        if file in outer:
            raise TemplateError(f"{synthesized.name}/{logical_id}: contains itself")
        nested = replace(
            synthesized,
            name=f"{synthesized.name}/{logical_id}",
            template=Template.read(folder / file),
        )
        # The address has a digest of what is below.
        shown["Properties"]["TemplateURL"] = names.replace(resource.properties["TemplateURL"])
        shown[NESTED_TEMPLATE] = _with_nested(StackInFolder(nested, folder), folder, outer | {file})
    return template


def _without_cdk(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return a template without what the CDK adds for itself."""
    kept: dict[str, Any] = {}
    for section, value in template.items():
        if section not in _ADDED_BY_THE_CDK:
            kept[section] = value
            continue
        added = _ADDED_BY_THE_CDK[section]
        rest = {name: declared for name, declared in value.items() if name not in added}
        if rest:
            kept[section] = rest

    resources = kept.get("Resources", {})
    kept["Resources"] = {name: _without_metadata(resource) for name, resource in resources.items()}
    return kept


def _without_metadata(resource: Mapping[str, Any]) -> dict[str, Any]:
    """Return a resource without the metadata of the CDK, and without an empty ``Metadata``."""
    metadata = {
        name: value
        for name, value in resource.get("Metadata", {}).items()
        if not name.startswith(_METADATA_OF_THE_CDK)
    }
    rest = {name: value for name, value in resource.items() if name != "Metadata"}
    return {**rest, "Metadata": metadata} if metadata else rest


def _in_order(value: Any) -> Any:
    """Sort the resources of policy statements again: the CDK has sorted them with their digests."""
    match value:
        case dict():
            return {key: _ordered(key, _in_order(member)) for key, member in value.items()}
        case list():
            return [_in_order(item) for item in value]
    return value


def _ordered(key: str, value: Any) -> Any:
    """Return a member of an object: a list of ARNs with replaced digests is sorted."""
    if key not in _ARN_LISTS or not isinstance(value, list):
        return value
    if "<" not in json.dumps(value):
        return value
    return sorted(value, key=lambda arn: json.dumps(arn, sort_keys=True))
