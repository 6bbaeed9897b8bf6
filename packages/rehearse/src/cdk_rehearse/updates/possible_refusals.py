"""What a service may refuse of an update, seen from the two versions alone.

These types are not simulated, or the order of their steps is not known, so that each is a warning.
Each rule is a function with its source. What is not known is no refusal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.cloud_assembly.template import TRANSFORM, Template

from ..services.resource_schemas import resource_schema
from .codes import CODES
from .custom_resource_ids import sdk_call
from .possible_attributes import attributes_without_schema
from .possible_database_refusals import DATABASE_RULES
from .possible_delivery_refusals import DELIVERY_RULES
from .possible_network_refusals import NETWORK_RULES
from .replacements import keeps_its_name, replacements
from .report import Problem
from .stack_update import PossibleRefusal, StackUpdate
from .versions import NONE, Version

__all__ = ["possible_refusals"]

_CODE = "rehearse-update-may-fail"
_FILES_OF_MODELS = ("Image", "ModelDataSource", "ModelDataUrl")
_STAGE = "AWS::ApiGateway::Stage"
_VERSION = "AWS::Lambda::Version"
#: The properties with which a resource names a stage of an API, and the list that they are in.
_USERS_OF_STAGES = {
    "AWS::ApiGateway::ApiKey": ("StageKeys", "RestApiId", "StageName"),
    "AWS::ApiGateway::BasePathMapping": ("", "RestApiId", "Stage"),
    "AWS::ApiGateway::UsagePlan": ("ApiStages", "ApiId", "Stage"),
}


def possible_refusals(old: Version, new: Version) -> Iterator[Problem]:
    """Yield a warning for each step that a service may refuse.

    Args:
        old: The deployed version.
        new: The version to deploy.
    """
    before = {stack.name: stack for version in old.stacks for stack in version.synthesized()}
    after = [stack for version in new.stacks for stack in version.synthesized()]
    if new == NONE:
        after = [SynthesizedStack(name, Template({"Resources": {}})) for name in before]
    for stack in after:
        update = StackUpdate(before.get(stack.name), stack)
        for found in _found(update):
            yield Problem(
                _CODE,
                CODES[_CODE].severity,
                found.logical_id,
                found.message,
                found.fix,
                stack=stack.name,
            )


def _found(update: StackUpdate) -> Iterator[PossibleRefusal]:
    for rule in _RULES:
        yield from rule(update)


def named_replacements(update: StackUpdate) -> Iterator[PossibleRefusal]:
    """A resource that may be replaced, and keeps the name that the template gives it.

    Source: CloudFormation User Guide, Troubleshooting: "cannot update a stack when a custom-named
    resource requires replacing"; aws/aws-cdk#29826.
    """
    if update.old is None:
        return
    for name, causes in replacements(update.old, update.new).possible.items():
        resource = update.after[name]
        old = update.old_properties(name)
        new = update.new_properties(name)
        if not keeps_its_name(resource.type, old, new):
            continue
        paths, _ = resource_schema(resource.type).identifying
        given = paths[0][0]
        yield PossibleRefusal(
            name,
            f"{' and '.join(causes)} may replace this {resource.type}, which keeps its {given}; "
            "CloudFormation then refuses the update",
            f"give it another {given} in the same update, or leave the name to CloudFormation",
        )


def stages_named_by_text(update: StackUpdate) -> Iterator[PossibleRefusal]:
    """A resource that names a new stage by its text, and does not wait for it.

    Source: aws/serverless-application-model#1560 and #192; API Gateway API reference,
    UpdateUsagePlan and CreateBasePathMapping: NotFoundException.
    """
    created = {}
    for stage in update.of_type(_STAGE):
        properties = update.new_properties(stage.logical_id)
        name = properties.get("StageName")
        if update.old_properties(stage.logical_id).get("StageName") != name:
            created[json.dumps(properties.get("RestApiId")), str(name)] = stage.logical_id

    for user in update.of_type(*_USERS_OF_STAGES):
        needed = update.needs(user.logical_id)
        for api, named in _named_stages(update, user.logical_id, user.type):
            waited = created.get((json.dumps(api), named))
            if waited is not None and waited not in needed:
                yield PossibleRefusal(
                    user.logical_id,
                    f'this {user.type} names the stage "{named}", which the update creates; it may '
                    f"be changed before the stage exists, since it does not wait for {waited}",
                    f"refer to the stage, or add DependsOn: {waited}",
                )


def _named_stages(update: StackUpdate, logical_id: str, type: str) -> Iterator[tuple[Any, str]]:
    """The APIs and the stages that a resource names."""
    listed, api, stage = _USERS_OF_STAGES[type]
    properties = update.new_properties(logical_id)
    items = properties.get(listed) if listed else [properties]
    for item in items if isinstance(items, list) else ():
        if isinstance(item, Mapping) and isinstance(item.get(stage), str):
            yield item.get(api), item[stage]


def unchanged_versions(update: StackUpdate) -> Iterator[PossibleRefusal]:
    """Another version of a function that stays as it is.

    Source: aws/aws-cdk#28252; Lambda API reference, PublishVersion: "Lambda doesn't publish a
    version if the function's configuration and code haven't changed since the last version".
    """
    published = {
        json.dumps(resource.properties.get("FunctionName"))
        for resource in update.before.values()
        if resource.type == _VERSION
    }
    for version in update.of_type(_VERSION):
        function = version.properties.get("FunctionName")
        if version.logical_id in update.before or json.dumps(function) not in published:
            continue
        name = function.get("Ref") if isinstance(function, Mapping) else None
        former = update.before.get(str(name))
        latter = update.after.get(str(name))
        if former is None or latter is None:
            continue
        if former.properties == latter.properties:
            yield PossibleRefusal(
                version.logical_id,
                f"this is another version of {name}, whose declaration does not change; if nothing "
                "that it refers to changes either, Lambda publishes none, and the update fails "
                "because the version exists already",
                "change the function in the same update, for example its description, or keep the "
                "logical ID of the version",
            )


def capacity_providers_in_use(update: StackUpdate) -> Iterator[PossibleRefusal]:
    """A capacity provider that a cluster loses while a service uses it.

    Source: ECS API reference, PutClusterCapacityProviders: ResourceInUseException;
    aws/aws-cdk#15366, where the update moved the providers into a resource of their own.
    """
    for cluster, old, new in update.kept("AWS::ECS::Cluster"):
        lost = _texts(old.get("CapacityProviders")) - _texts(new.get("CapacityProviders"))
        for service in update.before.values():
            own = {"Ref": cluster.logical_id}
            if service.type != "AWS::ECS::Service" or service.properties.get("Cluster") != own:
                continue
            used = lost & set(_strategy(update.old_properties(service.logical_id)))
            if used:
                yield PossibleRefusal(
                    cluster.logical_id,
                    f"the cluster loses {' and '.join(sorted(used))}, which {service.logical_id} "
                    "uses; ECS refuses to remove a provider that is in use",
                    "deploy first a version in which no service uses it",
                )


def _strategy(service: Mapping[str, Any]) -> Iterator[str]:
    items = service.get("CapacityProviderStrategy")
    for item in items if isinstance(items, list) else ():
        if isinstance(item, Mapping) and isinstance(item.get("CapacityProvider"), str):
            yield item["CapacityProvider"]


def _texts(value: Any) -> set[str]:
    """The strings of a list that may be missing, or that a function makes."""
    return {item for item in value if isinstance(item, str)} if isinstance(value, list) else set()


def repeated_creations(update: StackUpdate) -> Iterator[PossibleRefusal]:
    """A call of the CDK's ``AwsCustomResource`` that creates once more what it has created.

    Its function is called whenever a property changes, also one of the CDK's own, such as
    ``InstallLatestAwsSdk``. Source: aws/aws-cdk#25838; aws-cdk-lib, aws-custom-resource-handler.
    """
    for resource, old, new in update.kept("Custom::AWS"):
        created = sdk_call(old, "Create")
        call = sdk_call(new, "Update")
        if old == new or created is None or call is None:
            continue
        action = str(call.get("action"))
        is_same = all(call.get(key) == created.get(key) for key in ("action", "parameters"))
        if is_same and action.lower().startswith("create"):
            changed = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
            yield PossibleRefusal(
                resource.logical_id,
                f"{' and '.join(changed)} changes, so the function calls "
                f"{call.get('service')}.{action} once more with the parameters of what it has "
                "created; most services refuse this",
                "give on_update a call that changes the thing, or the parameters another name",
            )


def models_without_role(update: StackUpdate) -> Iterator[PossibleRefusal]:
    """A model with files or an image, and without the role that reads them.

    ``CreateModel`` does not require the role. Source: SageMaker API reference, CreateModel,
    ExecutionRoleArn: the role "to access model artifacts and docker image for deployment".
    """
    for model in update.of_type("AWS::SageMaker::Model"):
        if _is_without_role(update.new_properties(model.logical_id)):
            former = update.before.get(model.logical_id)
            if former is not None and _is_without_role(update.old_properties(model.logical_id)):
                continue
            yield PossibleRefusal(
                model.logical_id,
                "this model has no ExecutionRoleArn; with this role SageMaker reads the files and "
                "the image of a model, so an endpoint may not start with it",
                "set ExecutionRoleArn to a role that may read the files and pull the image",
            )


def _is_without_role(model: Mapping[str, Any]) -> bool:
    """Whether a model needs a role, and has none."""
    containers = model.get("Containers")
    listed = containers if isinstance(containers, list) else []
    known = [
        container
        for container in (*listed, model.get("PrimaryContainer"))
        if isinstance(container, Mapping)
    ]
    has_files = any(container.keys() & {*_FILES_OF_MODELS} for container in known)
    return has_files and not model.keys() & {"ExecutionRoleArn", TRANSFORM}


_RULES: Sequence[Callable[[StackUpdate], Iterator[PossibleRefusal]]] = (
    named_replacements,
    stages_named_by_text,
    unchanged_versions,
    capacity_providers_in_use,
    repeated_creations,
    models_without_role,
    attributes_without_schema,
    *DATABASE_RULES,
    *DELIVERY_RULES,
    *NETWORK_RULES,
)
