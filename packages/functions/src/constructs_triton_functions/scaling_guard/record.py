"""The guard's record: what a deployment has deregistered, kept in the Parameter Store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..retries import make_client
from ..scaling import call
from . import PARAMETER_FOLDER


@dataclass(frozen=True)
class Record:
    """What one deployment has deregistered.

    ``sweeper_id`` is the physical id that the deployment gave to the sweeper, ``request_id`` the
    request that did so. ``saved`` holds descriptions of variants, in the form of
    :meth:`Scaling.describe`.
    """

    sweeper_id: str
    request_id: str
    saved: tuple[Mapping[str, Any], ...] = ()

    def to_json(self) -> str:
        value = {"SweeperId": self.sweeper_id, "RequestId": self.request_id, "Saved": self.saved}
        return json.dumps(value, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Record:
        value = json.loads(text)
        return cls(value["SweeperId"], value["RequestId"], tuple(value["Saved"]))


class RecordStore:
    """Reads and writes the record of one endpoint's guard."""

    def __init__(self, stack_id: str, endpoint_logical_id: str) -> None:
        self._client = make_client("ssm")
        stack_uuid = stack_id.rpartition("/")[2]
        self._name = f"/{PARAMETER_FOLDER}/{stack_uuid}/{endpoint_logical_id}"

    def read(self) -> Record | None:
        try:
            found = call(self._client.get_parameter, Name=self._name)
        except self._client.exceptions.ParameterNotFound:
            return None
        return Record.from_json(found["Parameter"]["Value"])

    def write(self, record: Record) -> None:
        call(
            self._client.put_parameter,
            Name=self._name,
            Value=record.to_json(),
            Type="String",
            Tier="Intelligent-Tiering",
            Overwrite=True,
        )

    def delete(self) -> None:
        try:
            call(self._client.delete_parameter, Name=self._name)
        except self._client.exceptions.ParameterNotFound:
            return
