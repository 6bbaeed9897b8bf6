"""Keys, topics, parameters, image repositories and the CDK's metadata."""

from __future__ import annotations

import json
from typing import Any

from .provider import Deployed, Physical, Provider, Request, without

__all__ = ["PROVIDERS"]


class Key(Provider):
    type = "AWS::KMS::Key"

    def create(self, request: Request) -> Physical:
        tags = [
            {"TagKey": tag["Key"], "TagValue": tag["Value"]} for tag in request.properties.get("Tags", [])
        ]
        known = {"KeyPolicy": "Policy", "Description": "Description", "KeySpec": "KeySpec"}
        wanted: dict[str, Any] = {known[name]: request.properties[name] for name in self._known(request)}
        key = self.api.call("kms", "CreateKey", **wanted, **({"Tags": tags} if tags else {}))["KeyMetadata"]
        if request.properties.get("EnableKeyRotation") in (True, "true"):
            self.api.call("kms", "EnableKeyRotation", KeyId=key["KeyId"])
        return Physical(key["KeyId"], {"Arn": key["Arn"], "KeyId": key["KeyId"]})

    def update(self, current: Deployed, request: Request) -> Physical:
        if without(current.properties, "KeyPolicy") != without(request.properties, "KeyPolicy"):
            return super().update(current, request)
        policy = json.dumps(request.properties["KeyPolicy"])
        self.api.call("kms", "PutKeyPolicy", KeyId=current.physical.id, PolicyName="default", Policy=policy)
        return current.physical

    def delete(self, current: Deployed) -> None:
        days = current.properties.get("PendingWindowInDays", 30)
        self.api.call("kms", "ScheduleKeyDeletion", KeyId=current.physical.id, PendingWindowInDays=days)

    def _known(self, request: Request) -> list[str]:
        created = {"KeyPolicy", "Description", "KeySpec"}
        known = self.simulated(request, *created, "Tags", "EnableKeyRotation", "PendingWindowInDays")
        return sorted(created & known.keys())


class Alias(Provider):
    type = "AWS::KMS::Alias"

    def create(self, request: Request) -> Physical:
        self.api.call("kms", "CreateAlias", **request.properties)
        return Physical(request.properties["AliasName"])

    def update(self, current: Deployed, request: Request) -> Physical:
        self.api.call("kms", "UpdateAlias", **request.properties)
        return current.physical

    def delete(self, current: Deployed) -> None:
        self.api.call("kms", "DeleteAlias", AliasName=current.physical.id)


class Topic(Provider):
    type = "AWS::SNS::Topic"
    name_property = "TopicName"
    name_limit = 256
    _ATTRIBUTES = ("DisplayName", "KmsMasterKeyId")

    def create(self, request: Request) -> Physical:
        simulated = self.simulated(request, *self._ATTRIBUTES, "TopicName", "Tags")
        attributes = without(simulated, "TopicName", "Tags")
        tags = simulated.get("Tags", [])
        name = self.name(request)
        arn = self.api.call("sns", "CreateTopic", Name=name, Attributes=attributes, Tags=tags)["TopicArn"]
        return Physical(arn, {"TopicArn": arn, "TopicName": name})

    def update(self, current: Deployed, request: Request) -> Physical:
        if without(current.properties, *self._ATTRIBUTES) != without(request.properties, *self._ATTRIBUTES):
            return super().update(current, request)
        for name in self._ATTRIBUTES:
            value = request.properties.get(name, "")
            wanted = {"TopicArn": current.physical.id, "AttributeName": name, "AttributeValue": value}
            self.api.call("sns", "SetTopicAttributes", **wanted)
        return current.physical

    def delete(self, current: Deployed) -> None:
        self.api.call("sns", "DeleteTopic", TopicArn=current.physical.id)


class TopicPolicy(Provider):
    type = "AWS::SNS::TopicPolicy"

    def create(self, request: Request) -> Physical:
        for arn in request.properties["Topics"]:
            self._set(arn, json.dumps(request.properties["PolicyDocument"]))
        return Physical(request.logical_id, {"Id": request.logical_id})

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

    def create(self, request: Request) -> Physical:
        name = self.name(request)
        self.api.call("ssm", "PutParameter", **self._request(request, name))
        return self._physical(name, request)

    def update(self, current: Deployed, request: Request) -> Physical:
        name = current.physical.id
        self.api.call("ssm", "PutParameter", **self._request(request, name), Overwrite=True)
        return self._physical(name, request)

    def delete(self, current: Deployed) -> None:
        self.api.call("ssm", "DeleteParameter", Name=current.physical.id)

    def _request(self, request: Request, name: str) -> dict[str, Any]:
        wanted = {**without(request.properties, "Tags"), "Name": name}
        tags = request.properties.get("Tags", {})  # a map, unlike in other types
        if tags:
            wanted["Tags"] = [{"Key": key, "Value": value} for key, value in tags.items()]
        return wanted

    def _physical(self, name: str, request: Request) -> Physical:
        return Physical(name, {"Type": request.properties["Type"], "Value": request.properties["Value"]})


class Repository(Provider):
    type = "AWS::ECR::Repository"
    name_property = "RepositoryName"

    def create(self, request: Request) -> Physical:
        properties = self.simulated(
            request, "RepositoryName", "ImageTagMutability", "LifecyclePolicy", "RepositoryPolicyText"
        )
        name = self.name(request).lower()
        mutability = properties.get("ImageTagMutability", "MUTABLE")
        wanted = {"repositoryName": name, "imageTagMutability": mutability}
        found = self.api.call("ecr", "CreateRepository", **wanted)["repository"]
        self._put_policies(name, request)
        return Physical(name, {"Arn": found["repositoryArn"], "RepositoryUri": found["repositoryUri"]})

    def update(self, current: Deployed, request: Request) -> Physical:
        self._put_policies(current.physical.id, request)
        return current.physical

    def delete(self, current: Deployed) -> None:
        self.api.call("ecr", "DeleteRepository", repositoryName=current.physical.id)

    def _put_policies(self, name: str, request: Request) -> None:
        lifecycle = request.properties.get("LifecyclePolicy", {}).get("LifecyclePolicyText")
        if lifecycle is not None:
            self.api.call("ecr", "PutLifecyclePolicy", repositoryName=name, lifecyclePolicyText=lifecycle)
        policy = request.properties.get("RepositoryPolicyText")
        if policy is not None:
            self.api.call("ecr", "SetRepositoryPolicy", repositoryName=name, policyText=json.dumps(policy))


class CdkMetadata(Provider):
    """The list of constructs in use, which needs no call."""

    type = "AWS::CDK::Metadata"

    def create(self, request: Request) -> Physical:
        return Physical(request.logical_id)

    def update(self, current: Deployed, _: Request) -> Physical:
        return current.physical

    def delete(self, current: Deployed) -> None:
        pass


PROVIDERS = (Key, Alias, Topic, TopicPolicy, Parameter, Repository, CdkMetadata)
