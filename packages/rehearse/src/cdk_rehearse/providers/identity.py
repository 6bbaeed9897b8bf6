"""IAM: role, policy, managed policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constructs_triton_core.cloud_assembly.unknown_values import is_unknown

from ..existing import assume_role
from ..services.policy_documents import policy_text
from .provider import Deployed, Physical, Provider, Request, tags_as_map, without


class Role(Provider):
    type = "AWS::IAM::Role"
    name_property = "RoleName"
    name_limit = 64
    _ATTACHED = ("Policies", "ManagedPolicyArns")

    def create(self, request: Request) -> Physical:
        """Create the role with its policies."""
        name = self.name(request)
        wanted = {**without(request.properties, *self._ATTACHED), "RoleName": name}
        role = self.api.call("iam", "CreateRole", **wanted)["Role"]
        self._attach(name, request.properties)
        return Physical(name, {"Arn": role["Arn"], "RoleId": role["RoleId"]})

    def update(self, current: Deployed, request: Request) -> Physical:
        """Change the policies, the boundary, the tags and the description of the role."""
        name = current.physical.id
        old = current.properties
        new = request.properties

        document = policy_text(new["AssumeRolePolicyDocument"])
        self.api.call("iam", "UpdateAssumeRolePolicy", RoleName=name, PolicyDocument=document)
        described = {key: new[key] for key in ("Description", "MaxSessionDuration") if key in new}
        self.api.call("iam", "UpdateRole", RoleName=name, **described)

        self._set_boundary(name, old, new)
        self._retag(name, old, new)
        self._detach(name, old)
        self._attach(name, new)
        return current.physical

    def delete(self, current: Deployed) -> None:
        self._detach(current.physical.id, current.properties)
        self.api.call("iam", "DeleteRole", RoleName=current.physical.id)

    def _set_boundary(self, name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Set the permissions boundary of a role, or remove the former one."""
        boundary = new.get("PermissionsBoundary")
        if boundary:
            members = {"RoleName": name, "PermissionsBoundary": boundary}
            self.api.call("iam", "PutRolePermissionsBoundary", **members)
        elif "PermissionsBoundary" in old:
            self.api.call("iam", "DeleteRolePermissionsBoundary", RoleName=name)

    def _retag(self, name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Replace the tags of a role if they change."""
        if old.get("Tags") == new.get("Tags"):
            return
        keys = [*tags_as_map(old.get("Tags", []))]
        self.api.call("iam", "UntagRole", RoleName=name, TagKeys=keys)
        self.api.call("iam", "TagRole", RoleName=name, Tags=new.get("Tags", []))

    def _attach(self, name: str, properties: Mapping[str, Any]) -> None:
        for arn in properties.get("ManagedPolicyArns", []):
            self.api.call("iam", "AttachRolePolicy", RoleName=name, PolicyArn=arn)
        for policy in properties.get("Policies", []):
            self.api.call("iam", "PutRolePolicy", RoleName=name, **_inline(policy))

    def _detach(self, name: str, properties: Mapping[str, Any]) -> None:
        for arn in properties.get("ManagedPolicyArns", []):
            self.api.call("iam", "DetachRolePolicy", RoleName=name, PolicyArn=arn)
        for policy in properties.get("Policies", []):
            self.api.call("iam", "DeleteRolePolicy", RoleName=name, PolicyName=policy["PolicyName"])


class Policy(Provider):
    type = "AWS::IAM::Policy"

    def create(self, request: Request) -> Physical:
        """Put an inline policy into each of its roles."""
        self.simulated(request, "PolicyName", "PolicyDocument", "Roles")
        for role in request.properties.get("Roles", []):
            assume_role(self.api, role)
            names = ("PolicyName", "PolicyDocument")
            policy = {name: request.properties[name] for name in names}
            self.api.call("iam", "PutRolePolicy", RoleName=role, **_inline(policy))
        return Physical(request.logical_id, {"Id": request.logical_id})

    def update(self, current: Deployed, request: Request) -> Physical:
        """Remove the policy from roles that no longer have it, from all if its name changes."""
        is_renamed = current.properties["PolicyName"] != request.properties["PolicyName"]
        kept = [] if is_renamed else request.properties.get("Roles", [])
        self._remove(current, [role for role in _roles(current) if role not in kept])
        self.create(request)
        return current.physical

    def delete(self, current: Deployed) -> None:
        self._remove(current, _roles(current))

    def _remove(self, current: Deployed, roles: list[str]) -> None:
        for role in roles:
            name = current.properties["PolicyName"]
            self.api.call("iam", "DeleteRolePolicy", RoleName=role, PolicyName=name)


class RolePolicy(Provider):
    """An inline policy of one role, beside those that the role itself declares."""

    type = "AWS::IAM::RolePolicy"

    def create(self, request: Request) -> Physical:
        properties = request.properties
        assume_role(self.api, properties["RoleName"])
        self.api.call("iam", "PutRolePolicy", **_inline(properties))
        return Physical(f"{properties['PolicyName']}|{properties['RoleName']}", {})

    def update(self, current: Deployed, request: Request) -> Physical:
        self.create(request)
        return current.physical

    def delete(self, current: Deployed) -> None:
        names = {name: current.properties[name] for name in ("RoleName", "PolicyName")}
        self.api.call("iam", "DeleteRolePolicy", **names)


class ManagedPolicy(Provider):
    type = "AWS::IAM::ManagedPolicy"
    name_property = "ManagedPolicyName"
    name_limit = 128

    def create(self, request: Request) -> Physical:
        """Create the policy, and attach it to its roles."""
        wanted = without(request.properties, "ManagedPolicyName", "Roles")
        wanted["PolicyName"] = self.name(request)
        wanted["PolicyDocument"] = policy_text(wanted["PolicyDocument"])
        policy = self.api.call("iam", "CreatePolicy", **wanted)["Policy"]
        self._attach(policy["Arn"], request.properties)
        return Physical(policy["Arn"], {"PolicyArn": policy["Arn"], "PolicyId": policy["PolicyId"]})

    def update(self, current: Deployed, request: Request) -> Physical:
        """Set a new version of the policy, and attach it; other changes need a replacement."""
        arn = current.physical.id
        document = request.properties["PolicyDocument"]
        if document != current.properties["PolicyDocument"]:
            self._replace_version(arn, document)
        self._detach(current)
        self._attach(arn, request.properties)
        return current.physical

    def _replace_version(self, arn: str, document: Any) -> None:
        """Create a version and delete those before it, since a policy has at most five."""
        before = self.api.call("iam", "ListPolicyVersions", PolicyArn=arn)["Versions"]
        new = {"PolicyDocument": policy_text(document), "SetAsDefault": True}
        self.api.call("iam", "CreatePolicyVersion", PolicyArn=arn, **new)
        for version in before:
            identity = {"PolicyArn": arn, "VersionId": version["VersionId"]}
            self.api.call("iam", "DeletePolicyVersion", **identity)

    def delete(self, current: Deployed) -> None:
        self._detach(current)
        self.api.call("iam", "DeletePolicy", PolicyArn=current.physical.id)

    def _detach(self, current: Deployed) -> None:
        for role in _roles(current):
            self.api.call("iam", "DetachRolePolicy", RoleName=role, PolicyArn=current.physical.id)

    def _attach(self, arn: str, properties: Mapping[str, Any]) -> None:
        for role in properties.get("Roles", []):
            assume_role(self.api, role)
            self.api.call("iam", "AttachRolePolicy", RoleName=role, PolicyArn=arn)


def _inline(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return an inline policy with its document, which a role's policy may leave out."""
    document = policy.get("PolicyDocument", {"Statement": []})
    if is_unknown(document):
        document = policy_text(document)
    return {**policy, "PolicyDocument": document}


def _roles(current: Deployed) -> list[str]:
    return list(current.properties.get("Roles", []))
