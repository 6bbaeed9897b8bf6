"""Templates for snapshots, in which new content of the models changes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aws_cdk import Stack

from constructs_triton.testing.asset_names import StableNames
from constructs_triton.testing.synthesized_stack import synthesized_stack

DIGESTS = "Digests"
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


def stable_template(stack: Stack | Path | str, *, digests: bool = False) -> dict[str, Any]:
    """Return the template of a stack with names in place of digests.

    An archive's key becomes ``<archive:digits>``, a Lambda function's code ``<asset:ModelSync>``,
    an image ``<image:App>``. What the CDK adds for itself is left out: its bootstrap version, its
    metadata resource, and the paths of constructs. Accounts, Regions and everything else are
    unchanged.

    Args:
        stack: a stack, which is synthesized, or the path of a template that ``cdk synth`` wrote.
        digests: whether to add the digest of each asset in a section ``Digests``, so that new
            content of a model changes one line (default: no line).

    Raises:
        InvalidValueError: the stack is in no app, or the template cannot be read.
    """
    synthesized = synthesized_stack(stack)
    names = StableNames.of(synthesized)
    template: dict[str, Any] = _in_order(names.replace(_without_cdk(synthesized.template.body)))
    if not digests:
        return template
    text = json.dumps(template)
    return {
        **template,
        DIGESTS: {name: digest for name, digest in names.digests.items() if name in text},
    }


def _without_cdk(template: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for section, value in template.items():
        added = _ADDED_BY_THE_CDK.get(section, ())
        rest = {name: each for name, each in value.items() if name not in added} if added else value
        if rest or not added:
            kept[section] = rest
    resources = kept.get("Resources", {})
    return {
        **kept,
        "Resources": {name: _without_metadata(each) for name, each in resources.items()},
    }


def _without_metadata(resource: Mapping[str, Any]) -> dict[str, Any]:
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
            return {key: _ordered(key, _in_order(each)) for key, each in value.items()}
        case list():
            return [_in_order(each) for each in value]
    return value


def _ordered(key: str, value: Any) -> Any:
    if key not in _ARN_LISTS or not isinstance(value, list) or "<" not in json.dumps(value):
        return value
    return sorted(value, key=lambda each: json.dumps(each, sort_keys=True))
