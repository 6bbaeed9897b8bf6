"""What CloudFront, Lambda@Edge and Glue may refuse: names in use, and what has copies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .stack_update import PossibleRefusal, StackUpdate

__all__ = ["DELIVERY_RULES"]

_DISTRIBUTION = "AWS::CloudFront::Distribution"
_VERSION = "AWS::Lambda::Version"
_KEPT = ("Retain", "RetainExceptOnCreate")
#: The property that has the name of a thing in Glue's catalog, and what it must differ in besides.
_INPUTS = {
    "AWS::Glue::Database": ("DatabaseInput", ("CatalogId",)),
    "AWS::Glue::Table": ("TableInput", ("CatalogId", "DatabaseName")),
}


def aliases_in_use(update: StackUpdate) -> Iterator[PossibleRefusal]:
    """A distribution that gets an alternate domain name which another one still has.

    Source: CloudFront Developer Guide, Requirements for using alternate domain names:
    CNAMEAlreadyExists; aws/aws-cdk#12707 and #32373, where a construct got another logical ID.
    """
    owners = {}
    for name, resource in update.before.items():
        if resource.type == _DISTRIBUTION:
            owners.update(dict.fromkeys(_aliases(update.old_properties(name)), name))

    for distribution in update.of_type(_DISTRIBUTION):
        name = distribution.logical_id
        for alias in _aliases(update.new_properties(name)):
            owner = owners.get(alias, name)
            if owner != name:
                yield PossibleRefusal(
                    name,
                    f'the alternate domain name "{alias}" is that of {owner}, which CloudFormation '
                    "changes or deletes later; CloudFront refuses a name that another distribution "
                    "has",
                    f"keep the logical ID {owner} with override_logical_id, or deploy first a "
                    "version in which no distribution has the name",
                )


def _aliases(distribution: Mapping[str, Any]) -> Sequence[str]:
    """The alternate domain names of a distribution, without those that are not known."""
    config = distribution.get("DistributionConfig")
    aliases = config.get("Aliases") if isinstance(config, Mapping) else None
    listed = aliases if isinstance(aliases, list) else []
    return [alias.lower() for alias in listed if isinstance(alias, str)]


def replicated_functions(update: StackUpdate) -> Iterator[PossibleRefusal]:
    """A function that leaves the stack while the edge locations still have copies of it.

    Source: CloudFront Developer Guide, Delete Lambda@Edge functions and replicas; aws/aws-cdk#15010
    and #15273, serverless-nextjs/serverless-next.js#2432.
    """
    functions_of = {}
    for name, resource in update.before.items():
        function = resource.properties.get("FunctionName")
        if resource.type == _VERSION and isinstance(function, Mapping):
            functions_of[name] = str(function.get("Ref"))

    for name, resource in update.before.items():
        if resource.type != _DISTRIBUTION:
            continue
        for version in _edge_versions(resource.properties):
            function = functions_of.get(version, "")
            if _is_deleted(update, function):
                yield PossibleRefusal(
                    function,
                    f"{name} runs this function at edge locations; Lambda keeps it as long as it "
                    "has copies there, some hours after the distribution has no more use for it",
                    "retain the function and its version (RemovalPolicy.RETAIN); the next day they "
                    "can be removed by hand",
                )


def _edge_versions(distribution: Mapping[str, Any]) -> Iterator[str]:
    """Yield the logical IDs of the versions of functions that a distribution runs."""
    config = distribution.get("DistributionConfig")
    if not isinstance(config, Mapping):
        return
    others = config.get("CacheBehaviors")
    behaviors = [config.get("DefaultCacheBehavior"), *(others if isinstance(others, list) else ())]
    for behavior in behaviors:
        found = behavior.get("LambdaFunctionAssociations") if isinstance(behavior, Mapping) else ()
        for association in found if isinstance(found, list) else ():
            arn = association.get("LambdaFunctionARN") if isinstance(association, Mapping) else None
            if isinstance(arn, Mapping) and isinstance(arn.get("Ref"), str):
                yield arn["Ref"]


def _is_deleted(update: StackUpdate, name: str) -> bool:
    """Whether an update deletes a resource of OLD."""
    resource = update.before.get(name)
    return (
        resource is not None and name not in update.after and resource.deletion_policy not in _KEPT
    )


def catalog_names_in_use(update: StackUpdate) -> Iterator[PossibleRefusal]:
    """A database or a table of Glue's catalog under another logical ID.

    Source: Glue API reference, CreateDatabase and CreateTable: AlreadyExistsException.
    """
    owners = {}
    for name, resource in update.before.items():
        if (key := _catalog_name(resource.type, update.old_properties(name))) is not None:
            owners[key] = name

    for resource in update.of_type(*_INPUTS):
        name = resource.logical_id
        key = _catalog_name(resource.type, update.new_properties(name))
        owner = owners.get(key, name) if key is not None else name
        if owner != name and name not in update.before:
            yield PossibleRefusal(
                name,
                f"{owner} has this name in Glue's catalog, and CloudFormation deletes it later; "
                "Glue refuses a second one",
                f"keep the logical ID {owner} with override_logical_id, or give it another name",
            )


def _catalog_name(resource_type: str, properties: Mapping[str, Any]) -> str | None:
    """Return what no two things of Glue's catalog have in common; ``None`` if it is not known."""
    if resource_type not in _INPUTS:
        return None
    input_property, others = _INPUTS[resource_type]
    given = properties.get(input_property)
    name = given.get("Name") if isinstance(given, Mapping) else None
    if not isinstance(name, str):
        return None
    return json.dumps([resource_type, name.lower(), *(properties.get(other) for other in others)])


DELIVERY_RULES: Sequence[Callable[[StackUpdate], Iterator[PossibleRefusal]]] = (
    aliases_in_use,
    replicated_functions,
    catalog_names_in_use,
)
