"""Keys, topics, parameters, image repositories, state machines and schedules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..errors import NotSimulatedError
from ..services.policy_documents import policy_text
from .called import CalledResource
from .provider import Deployed, Physical, Provider, Request, different, without

_SYMMETRIC = "SYMMETRIC_DEFAULT"  # only such keys can rotate
_KEY_MEMBERS = {"KeyPolicy": "Policy", "Description": "Description", "KeySpec": "KeySpec"}
"""The members of CreateKey, by property."""
_STATE_MACHINE_MEMBERS = {
    "RoleArn": "roleArn",
    "DefinitionString": "definition",
    "StateMachineType": "type",
}
"""The members of CreateStateMachine, by property."""


def _renamed(properties: Mapping[str, Any], members: Mapping[str, str]) -> dict[str, Any]:
    """The properties that have a member, by the name of the member."""
    return {members[name]: value for name, value in properties.items() if name in members}


class Key(Provider):
    type = "AWS::KMS::Key"

    def create(self, request: Request) -> Physical:
        """Create the key with its policy, tags and rotation."""
        given = self.simulated(
            request, *_KEY_MEMBERS, "Tags", "EnableKeyRotation", "PendingWindowInDays"
        )
        wanted = _renamed(given, _KEY_MEMBERS)
        tags = [{"TagKey": tag["Key"], "TagValue": tag["Value"]} for tag in given.get("Tags", [])]
        if tags:
            wanted["Tags"] = tags

        key = self.api.call("kms", "CreateKey", **wanted)["KeyMetadata"]
        if _rotates(request):
            self.api.call("kms", "EnableKeyRotation", KeyId=key["KeyId"])
        return Physical(key["KeyId"], {"Arn": key["Arn"], "KeyId": key["KeyId"]})

    def update(self, current: Deployed, request: Request) -> Physical:
        """Update in place. The policy applies even if a change beside it is not simulated."""
        key = {"KeyId": current.physical.id}
        wanted = request.properties
        policy = policy_text(wanted["KeyPolicy"])
        description = wanted.get("Description", "")
        self.api.call("kms", "PutKeyPolicy", **key, PolicyName="default", Policy=policy)
        self.api.call("kms", "UpdateKeyDescription", **key, Description=description)

        if wanted.get("KeySpec", _SYMMETRIC) == _SYMMETRIC:
            operation = "EnableKeyRotation" if _rotates(request) else "DisableKeyRotation"
            self.api.call("kms", operation, **key)

        updated = {"KeyPolicy", "Description", "EnableKeyRotation", "PendingWindowInDays"}
        if different(current.properties, wanted) - updated:
            return super().update(current, request)
        return current.physical

    def delete(self, current: Deployed) -> None:
        days = current.properties.get("PendingWindowInDays", 30)
        key = {"KeyId": current.physical.id}
        self.api.call("kms", "ScheduleKeyDeletion", **key, PendingWindowInDays=days)


def _rotates(request: Request) -> bool:
    return request.properties.get("EnableKeyRotation") in (True, "true")


class Alias(CalledResource):
    type = "AWS::KMS::Alias"
    service = "kms"
    create_operation = "CreateAlias"
    update_operation = "UpdateAlias"
    delete_operation = "DeleteAlias"

    def physical(self, found: Mapping[str, Any]) -> Physical:
        return Physical(str(found["AliasName"]))

    def key(self, current: Deployed) -> dict[str, Any]:
        return {"AliasName": current.physical.id}


class Topic(Provider):
    type = "AWS::SNS::Topic"
    name_property = "TopicName"
    name_limit = 256
    deletion = ("sns", "DeleteTopic", "TopicArn")
    _ATTRIBUTES = ("DisplayName", "KmsMasterKeyId")

    def create(self, request: Request) -> Physical:
        """Create the topic."""
        simulated = self.simulated(request, *self._ATTRIBUTES, "TopicName", "Tags")
        attributes = without(simulated, "TopicName", "Tags")
        tags = simulated.get("Tags", [])
        name = self.name(request)
        answer = self.api.call("sns", "CreateTopic", Name=name, Attributes=attributes, Tags=tags)
        arn = answer["TopicArn"]
        return Physical(arn, {"TopicArn": arn, "TopicName": name})

    def update(self, current: Deployed, request: Request) -> Physical:
        """Set the attributes of the topic, if nothing else changes."""
        changed = different(current.properties, request.properties)
        if changed - {*self._ATTRIBUTES}:
            return super().update(current, request)
        for name in self._ATTRIBUTES:
            value = request.properties.get(name, "")
            attribute = {"AttributeName": name, "AttributeValue": value}
            self.api.call("sns", "SetTopicAttributes", TopicArn=current.physical.id, **attribute)
        return current.physical


class TopicPolicy(Provider):
    type = "AWS::SNS::TopicPolicy"

    def create(self, request: Request) -> Physical:
        for arn in request.properties["Topics"]:
            self._set(arn, policy_text(request.properties["PolicyDocument"]))
        return Physical(request.logical_id, {"Id": request.logical_id})

    def update(self, current: Deployed, request: Request) -> Physical:
        self.delete(current)
        return self.create(request)

    def delete(self, current: Deployed) -> None:
        """Restore the topics' default policy, which allows the owner only."""
        nothing = json.dumps({"Version": "2012-10-17", "Statement": []})
        for arn in current.properties["Topics"]:
            self._set(arn, nothing)

    def _set(self, arn: str, document: str) -> None:
        wanted = {"TopicArn": arn, "AttributeName": "Policy", "AttributeValue": document}
        self.api.call("sns", "SetTopicAttributes", **wanted)


class Parameter(Provider):
    type = "AWS::SSM::Parameter"
    name_property = "Name"
    name_limit = 255
    deletion = ("ssm", "DeleteParameter", "Name")

    def create(self, request: Request) -> Physical:
        name = self.name(request)
        self.api.call("ssm", "PutParameter", **self._request(request, name))
        return self._physical(name, request)

    def update(self, current: Deployed, request: Request) -> Physical:
        """Update in place; SSM takes no tags together with a new value,
        so they stay as they are.
        """
        name = current.physical.id
        wanted = without(self._request(request, name), "Tags")
        self.api.call("ssm", "PutParameter", **wanted, Overwrite=True)
        return self._physical(name, request)

    def _request(self, request: Request, name: str) -> dict[str, Any]:
        wanted = {**without(request.properties, "Tags"), "Name": name}
        tags = request.properties.get("Tags", {})  # a map, unlike in other types
        if tags:
            wanted["Tags"] = [{"Key": key, "Value": value} for key, value in tags.items()]
        return wanted

    def _physical(self, name: str, request: Request) -> Physical:
        attributes = {member: request.properties[member] for member in ("Type", "Value")}
        return Physical(name, attributes)


class Repository(Provider):
    type = "AWS::ECR::Repository"
    name_property = "RepositoryName"
    deletion = ("ecr", "DeleteRepository", "repositoryName")

    def create(self, request: Request) -> Physical:
        """Create the repository with its policies."""
        properties = self.simulated(
            request,
            "RepositoryName",
            "ImageTagMutability",
            "LifecyclePolicy",
            "RepositoryPolicyText",
            "Tags",
        )
        name = self.name(request).lower()
        mutability = properties.get("ImageTagMutability", "MUTABLE")
        wanted = {"repositoryName": name, "imageTagMutability": mutability}
        found = self.api.call("ecr", "CreateRepository", **wanted)["repository"]
        self._put_policies(name, request)
        attributes = {"Arn": found["repositoryArn"], "RepositoryUri": found["repositoryUri"]}
        return Physical(name, attributes)

    def update(self, current: Deployed, request: Request) -> Physical:
        self._put_policies(current.physical.id, request)
        return current.physical

    def _put_policies(self, name: str, request: Request) -> None:
        """Set the lifecycle policy and the policy of permissions."""
        key = {"repositoryName": name}
        lifecycle = request.properties.get("LifecyclePolicy", {}).get("LifecyclePolicyText")
        if lifecycle is not None:
            self.api.call("ecr", "PutLifecyclePolicy", **key, lifecyclePolicyText=lifecycle)

        policy = request.properties.get("RepositoryPolicyText")
        if policy is not None:
            self.api.call("ecr", "SetRepositoryPolicy", **key, policyText=policy_text(policy))


class StateMachine(Provider):
    type = "AWS::StepFunctions::StateMachine"
    name_property = "StateMachineName"
    name_limit = 80
    deletion = ("stepfunctions", "DeleteStateMachine", "stateMachineArn")

    def create(self, request: Request) -> Physical:
        """Create the state machine from its DefinitionString."""
        if "DefinitionString" not in request.properties:
            raise NotSimulatedError(
                f"{self.type}: a definition outside DefinitionString is not simulated"
            )
        given = self.simulated(request, *_STATE_MACHINE_MEMBERS, "StateMachineName", "Tags")
        wanted = _renamed(given, _STATE_MACHINE_MEMBERS)
        name = self.name(request)
        answer = self.api.call("stepfunctions", "CreateStateMachine", **wanted, name=name)
        arn = answer["stateMachineArn"]
        return Physical(arn, {"Arn": arn, "Name": name})

    def update(self, current: Deployed, request: Request) -> Physical:
        updated = {name: request.properties[name] for name in ("RoleArn", "DefinitionString")}
        wanted = _renamed(updated, _STATE_MACHINE_MEMBERS)
        arn = current.physical.id
        self.api.call("stepfunctions", "UpdateStateMachine", **wanted, stateMachineArn=arn)
        return current.physical


class Schedule(CalledResource):
    type = "AWS::Scheduler::Schedule"
    name_property = "Name"
    service = "scheduler"
    create_operation = "CreateSchedule"
    update_operation = "UpdateSchedule"
    delete_operation = "DeleteSchedule"

    def physical(self, found: Mapping[str, Any]) -> Physical:
        return Physical(str(found["Name"]), {"Arn": found["ScheduleArn"]})

    def key(self, current: Deployed) -> dict[str, Any]:
        group = current.properties.get("GroupName", "default")
        return {"Name": current.physical.id, "GroupName": group}
