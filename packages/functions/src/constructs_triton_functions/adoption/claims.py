"""The claims on an endpoint: which resource of which stack adopted it, and what it was before.

They are one parameter in the Parameter Store, because CloudFormation passes nothing of that kind to
the deletion of a resource whose creation failed. The last claim is in force. There are several only
while a deployment moves the endpoint to another construct of the same stack.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ..response import CustomResourceError, Event
from ..retries import make_client
from ..scaling import call
from . import PARAMETER_FOLDER

_KEPT_CONFIGS = 10


@dataclass(frozen=True)
class Claim:
    """What an endpoint was before a resource adopted it.

    ``stack_id`` and ``logical_id`` identify the resource. ``scaling`` are descriptions of the
    variants, as :meth:`Scaling.describe` returns them. ``configs`` are the configurations that the
    resource asked for.
    """

    stack_id: str
    logical_id: str
    endpoint_config_name: str
    scaling: list[dict[str, Any]] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)
    configs: list[str] = field(default_factory=list)

    def is_of(self, event: Event) -> bool:
        return (self.stack_id, self.logical_id) == (event["StackId"], event["LogicalResourceId"])

    def asking_for(self, config: str) -> Claim:
        """The claim after its resource asks for a configuration; the oldest ones are forgotten."""
        others = [each for each in self.configs if each != config]
        return replace(self, configs=[*others, config][-_KEPT_CONFIGS:])


class Claims:
    """Reads and writes the claims on one endpoint."""

    def __init__(self, endpoint_name: str) -> None:
        self._client = make_client("ssm")
        self.parameter = f"/{PARAMETER_FOLDER}/{endpoint_name}"

    def read(self) -> list[Claim]:
        try:
            found = call(self._client.get_parameter, Name=self.parameter)
        except self._client.exceptions.ParameterNotFound:
            return []
        return [Claim(**each) for each in json.loads(found["Parameter"]["Value"])]

    def write(self, claims: list[Claim]) -> None:
        """Write the claims; without any, delete the parameter."""
        if claims:
            self._put(claims, overwrites=True)
            return
        with suppress(self._client.exceptions.ParameterNotFound):
            call(self._client.delete_parameter, Name=self.parameter)

    def add(self, claim: Claim, event: Event) -> list[Claim]:
        """Add the claim of a new resource, and return all claims.

        A second run for the same event may have written its claim meanwhile, and changed the
        endpoint. That claim stays, because it has what the endpoint was before.
        """
        found = self.read_for(claim.stack_id)
        if any(each.is_of(event) for each in found):
            return found
        try:
            self._put([*found, claim], overwrites=bool(found))
        except self._client.exceptions.ParameterAlreadyExists:
            return self.add(claim, event)
        return [*found, claim]

    def _put(self, claims: list[Claim], *, overwrites: bool) -> None:
        call(
            self._client.put_parameter,
            Name=self.parameter,
            Value=json.dumps([asdict(each) for each in claims], separators=(",", ":")),
            Type="String",
            Tier="Intelligent-Tiering",
            Overwrite=overwrites,
        )

    def read_for(self, stack_id: str) -> list[Claim]:
        """Read the claims; refuse a second stack, which would update the endpoint
        against the first one.
        """
        claims = self.read()
        others = sorted({each.stack_id for each in claims if each.stack_id != stack_id})
        if others:
            raise CustomResourceError(
                f"stack {others[0]} has adopted this endpoint already; remove the construct there "
                "first. If that stack no longer has it, delete the record with `aws ssm "
                f"delete-parameter --name {self.parameter}`, then deploy again"
            )
        return claims
