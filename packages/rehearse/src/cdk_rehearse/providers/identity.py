"""IAM: role, policy, managed policy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..existing import assume_role
from .provider import Deployed, Physical, Provider, Request, without


class Role(Provider):
    type = "AWS::IAM::Role"
    name_property, name_limit = "RoleName", 64
    _ATTACHED = ("Policies", "ManagedPolicyArns")

    def create(self, request: Request) -> Physical:
        name = self.name(request)
        wanted = {**without(request.properties, *self._ATTACHED), "RoleName": name}
        role = self.api.call("iam", "CreateRole", **wanted)["Role"]
        self._attach(name, request.properties)
        return Physical(name, {"Arn": role["Arn"], "RoleId": role["RoleId"]})

    def update(self, current: Deployed, request: Request) -> Physical:
        changeable = (*self._ATTACHED, "AssumeRolePolicyDocument")
        if without(current.properties, *changeable) != without(request.properties, *changeable):
            return super().update(current, request)
        name = current.physical.id
        document = json.dumps(request.properties["AssumeRolePolicyDocument"])
        self.api.call("iam", "UpdateAssumeRolePolicy", RoleName=name, PolicyDocument=document)
        self._detach(name, current.properties)
        self._attach(name, request.properties)
        return current.physical

    def delete(self, current: Deployed) -> None:
        self._detach(current.physical.id, current.properties)
        self.api.call("iam", "DeleteRole", RoleName=current.physical.id)

    def _attach(self, name: str, properties: Mapping[str, Any]) -> None:
        for arn in properties.get("ManagedPolicyArns", []):
            self.api.call("iam", "AttachRolePolicy", RoleName=name, PolicyArn=arn)
        for policy in properties.get("Policies", []):
            self.api.call("iam", "PutRolePolicy", RoleName=name, **policy)

    def _detach(self, name: str, properties: Mapping[str, Any]) -> None:
        for arn in properties.get("ManagedPolicyArns", []):
            self.api.call("iam", "DetachRolePolicy", RoleName=name, PolicyArn=arn)
        for policy in properties.get("Policies", []):
            self.api.call("iam", "DeleteRolePolicy", RoleName=name, PolicyName=policy["PolicyName"])


class Policy(Provider):
    type = "AWS::IAM::Policy"

    def create(self, request: Request) -> Physical:
        self.simulated(request, "PolicyName", "PolicyDocument", "Roles")
        for role in request.properties.get("Roles", []):
            assume_role(self.api, role)
            policy = {name: request.properties[name] for name in ("PolicyName", "PolicyDocument")}
            self.api.call("iam", "PutRolePolicy", RoleName=role, **policy)
        return Physical(request.logical_id, {"Id": request.logical_id})

    def update(self, current: Deployed, request: Request) -> Physical:
        kept = set(request.properties.get("Roles", []))
        renamed = current.properties["PolicyName"] != request.properties["PolicyName"]
        self._remove(current, [role for role in _roles(current) if renamed or role not in kept])
        self.create(request)
        return current.physical

    def delete(self, current: Deployed) -> None:
        self._remove(current, _roles(current))

    def _remove(self, current: Deployed, roles: list[str]) -> None:
        for role in roles:
            name = current.properties["PolicyName"]
            self.api.call("iam", "DeleteRolePolicy", RoleName=role, PolicyName=name)


class ManagedPolicy(Provider):
    type = "AWS::IAM::ManagedPolicy"
    name_property, name_limit = "ManagedPolicyName", 128

    def create(self, request: Request) -> Physical:
        wanted = without(request.properties, "ManagedPolicyName", "Roles")
        policy = self.api.call("iam", "CreatePolicy", **{**wanted, "PolicyName": self.name(request)})[
            "Policy"
        ]
        for role in request.properties.get("Roles", []):
            assume_role(self.api, role)
            self.api.call("iam", "AttachRolePolicy", RoleName=role, PolicyArn=policy["Arn"])
        return Physical(policy["Arn"], {"PolicyArn": policy["Arn"], "PolicyId": policy["PolicyId"]})

    def delete(self, current: Deployed) -> None:
        arn = current.physical.id
        for role in _roles(current):
            self.api.call("iam", "DetachRolePolicy", RoleName=role, PolicyArn=arn)
        self.api.call("iam", "DeletePolicy", PolicyArn=arn)


def _roles(current: Deployed) -> list[str]:
    return list(current.properties.get("Roles", []))
