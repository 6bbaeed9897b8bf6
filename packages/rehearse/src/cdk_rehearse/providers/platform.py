"""Keys, topics, parameters, image repositories, state machines and schedules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..errors import NotSimulatedError
from ..services.policy_documents import policy_text
from .called import CalledResource
from .provider import Deployed, Physical, Provider, Request, without

_SYMMETRIC = "SYMMETRIC_DEFAULT"  # only such keys can rotate
_STATE_MACHINE = {
    "RoleArn": "roleArn",
    "DefinitionString": "definition",
    "StateMachineType": "type",
}


class Key(Provider):
    type = "AWS::KMS::Key"

    def create(self, request: Request) -> Physical:
        given = request.properties.get("Tags", [])
        tags = [{"TagKey": tag["Key"], "TagValue": tag["Value"]} for tag in given]
        known = {"KeyPolicy": "Policy", "Description": "Description", "KeySpec": "KeySpec"}
        simulated = self.simulated(
            request, *known, "Tags", "EnableKeyRotation", "PendingWindowInDays"
        )
        wanted: dict[str, Any] = {
            known[name]: each for name, each in simulated.items() if name in known
        }
        key = self.api.call("kms", "CreateKey", **wanted, **({"Tags": tags} if tags else {}))[
            "KeyMetadata"
        ]
        if _rotates(request):
            self.api.call("kms", "EnableKeyRotation", KeyId=key["KeyId"])
        return Physical(key["KeyId"], {"Arn": key["Arn"], "KeyId": key["KeyId"]})

    def update(self, current: Deployed, request: Request) -> Physical:
        """Update in place. The policy applies even if a change beside it is not simulated."""
        key, wanted = {"KeyId": current.physical.id}, request.properties
        policy = policy_text(wanted["KeyPolicy"])
        self.api.call("kms", "PutKeyPolicy", **key, PolicyName="default", Policy=policy)
        self.api.call(
            "kms", "UpdateKeyDescription", **key, Description=wanted.get("Description", "")
        )
        if wanted.get("KeySpec", _SYMMETRIC) == _SYMMETRIC:
            self.api.call(
                "kms", "EnableKeyRotation" if _rotates(request) else "DisableKeyRotation", **key
            )
        updated = ("KeyPolicy", "Description", "EnableKeyRotation", "PendingWindowInDays")
        if without(current.properties, *updated) != without(wanted, *updated):
            return super().update(current, request)
        return current.physical

    def delete(self, current: Deployed) -> None:
        days = current.properties.get("PendingWindowInDays", 30)
        self.api.call(
            "kms", "ScheduleKeyDeletion", KeyId=current.physical.id, PendingWindowInDays=days
        )


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
    name_property, name_limit = "TopicName", 256
    deletion = ("sns", "DeleteTopic", "TopicArn")
    _ATTRIBUTES = ("DisplayName", "KmsMasterKeyId")

    def create(self, request: Request) -> Physical:
        simulated = self.simulated(request, *self._ATTRIBUTES, "TopicName", "Tags")
        attributes = without(simulated, "TopicName", "Tags")
        tags = simulated.get("Tags", [])
        name = self.name(request)
        arn = self.api.call("sns", "CreateTopic", Name=name, Attributes=attributes, Tags=tags)[
            "TopicArn"
        ]
        return Physical(arn, {"TopicArn": arn, "TopicName": name})

    def update(self, current: Deployed, request: Request) -> Physical:
        if without(current.properties, *self._ATTRIBUTES) != without(
            request.properties, *self._ATTRIBUTES
        ):
            return super().update(current, request)
        for name in self._ATTRIBUTES:
            value = request.properties.get(name, "")
            wanted = {
                "TopicArn": current.physical.id,
                "AttributeName": name,
                "AttributeValue": value,
            }
            self.api.call("sns", "SetTopicAttributes", **wanted)
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
    name_property, name_limit = "Name", 255
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
        return Physical(
            name, {"Type": request.properties["Type"], "Value": request.properties["Value"]}
        )


class Repository(Provider):
    type = "AWS::ECR::Repository"
    name_property = "RepositoryName"
    deletion = ("ecr", "DeleteRepository", "repositoryName")

    def create(self, request: Request) -> Physical:
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
        return Physical(
            name, {"Arn": found["repositoryArn"], "RepositoryUri": found["repositoryUri"]}
        )

    def update(self, current: Deployed, request: Request) -> Physical:
        self._put_policies(current.physical.id, request)
        return current.physical

    def _put_policies(self, name: str, request: Request) -> None:
        lifecycle = request.properties.get("LifecyclePolicy", {}).get("LifecyclePolicyText")
        if lifecycle is not None:
            self.api.call(
                "ecr", "PutLifecyclePolicy", repositoryName=name, lifecyclePolicyText=lifecycle
            )
        policy = request.properties.get("RepositoryPolicyText")
        if policy is not None:
            self.api.call(
                "ecr", "SetRepositoryPolicy", repositoryName=name, policyText=policy_text(policy)
            )


class StateMachine(Provider):
    type = "AWS::StepFunctions::StateMachine"
    name_property, name_limit = "StateMachineName", 80
    deletion = ("stepfunctions", "DeleteStateMachine", "stateMachineArn")

    def create(self, request: Request) -> Physical:
        if "DefinitionString" not in request.properties:
            raise NotSimulatedError(
                f"{self.type}: a definition outside DefinitionString is not simulated"
            )
        simulated = self.simulated(request, *_STATE_MACHINE, "StateMachineName", "Tags")
        wanted = {
            _STATE_MACHINE[name]: value
            for name, value in simulated.items()
            if name in _STATE_MACHINE
        }
        name = self.name(request)
        arn = self.api.call("stepfunctions", "CreateStateMachine", **wanted, name=name)[
            "stateMachineArn"
        ]
        return Physical(arn, {"Arn": arn, "Name": name})

    def update(self, current: Deployed, request: Request) -> Physical:
        wanted = {
            _STATE_MACHINE[name]: request.properties[name]
            for name in ("RoleArn", "DefinitionString")
        }
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
