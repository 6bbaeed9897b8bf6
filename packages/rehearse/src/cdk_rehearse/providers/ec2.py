"""The base of the resource types of Amazon EC2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..errors import StackError
from .called import CalledResource
from .provider import Deployed, Physical, Request


class Ec2Resource(CalledResource):
    """A resource of a network, which one member of its description identifies."""

    service = "ec2"
    id_member: ClassVar[str]
    """This member is the physical ID, and the attribute of the same name."""
    tag_type: ClassVar[str] = ""
    """The name of the type in ``TagSpecifications``. Default: the type has no tags."""

    def members(self, request: Request, name: str) -> dict[str, Any]:
        members = super().members(request, name)
        if self.tag_type and (tags := members.pop("Tags", [])):
            members["TagSpecifications"] = [{"ResourceType": self.tag_type, "Tags": tags}]
        return members

    def described(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """The description, which most operations have below the name of the type.

        An operation that creates several resources reports a failure beside those that it created.
        """
        for failure in answer.get("Unsuccessful", ()):
            raise StackError(failure["Error"]["Message"])
        below: Mapping[str, Any] = answer.get(self.create_operation.removeprefix("Create"), answer)
        return below

    def physical(self, found: Mapping[str, Any]) -> Physical:
        physical_id = found[self.id_member]
        return Physical(physical_id, {self.id_member: physical_id})

    def key(self, current: Deployed) -> dict[str, Any]:
        return {self.id_member: current.physical.id}
