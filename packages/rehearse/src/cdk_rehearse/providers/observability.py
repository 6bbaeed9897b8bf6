"""CloudWatch alarms, dashboards and log groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constructs_triton_core.bounded_json import parse_bounded_json

from ..errors import StackError
from .called import CalledResource
from .provider import Deployed, Physical, Provider, PutProvider, Request, different, tags_as_map


class Alarm(CalledResource):
    type = "AWS::CloudWatch::Alarm"
    name_property = "AlarmName"
    service = "cloudwatch"
    create_operation = "PutMetricAlarm"
    update_operation = "PutMetricAlarm"
    delete_operation = "DeleteAlarms"

    def physical(self, found: Mapping[str, Any]) -> Physical:
        name = str(found["AlarmName"])
        arn = f"arn:aws:cloudwatch:{self.api.region}:{self.api.account}:alarm:{name}"
        return Physical(name, {"Arn": arn})

    def key(self, current: Deployed) -> dict[str, Any]:
        return {"AlarmNames": [current.physical.id]}


class Dashboard(PutProvider):
    type = "AWS::CloudWatch::Dashboard"
    name_property = "DashboardName"
    name_limit = 255
    deletion = ("cloudwatch", "DeleteDashboards", "DashboardNames")

    def put(self, request: Request, name: str) -> Physical:
        """Create or replace the dashboard; its body must be JSON."""
        body = request.properties["DashboardBody"]
        try:
            parse_bounded_json(body)
        except ValueError as error:
            raise StackError(
                f"The field DashboardBody must be a valid JSON object: {error}"
            ) from None
        self.api.call("cloudwatch", "PutDashboard", DashboardName=name, DashboardBody=body)
        return Physical(name)


class LogGroup(Provider):
    type = "AWS::Logs::LogGroup"
    name_property = "LogGroupName"
    name_limit = 255
    deletion = ("logs", "DeleteLogGroup", "logGroupName")

    def create(self, request: Request) -> Physical:
        """Create the log group with its key, tags and retention."""
        name = self.name(request)
        known = self.simulated(request, "LogGroupName", "KmsKeyId", "Tags", "RetentionInDays")
        wanted: dict[str, Any] = {"logGroupName": name}
        if known.get("KmsKeyId"):
            wanted["kmsKeyId"] = known["KmsKeyId"]
        if known.get("Tags"):
            wanted["tags"] = tags_as_map(known["Tags"])
        self.api.call("logs", "CreateLogGroup", **wanted)
        self._retain(name, request)
        arn = f"arn:aws:logs:{self.api.region}:{self.api.account}:log-group:{name}:*"
        return Physical(name, {"Arn": arn})

    def update(self, current: Deployed, request: Request) -> Physical:
        changed = different(current.properties, request.properties)
        if changed - {"RetentionInDays"}:
            return super().update(current, request)
        self._retain(current.physical.id, request)
        return current.physical

    def _retain(self, name: str, request: Request) -> None:
        days = request.properties.get("RetentionInDays")
        if days is None:
            self.api.call("logs", "DeleteRetentionPolicy", logGroupName=name)
        else:
            self.api.call("logs", "PutRetentionPolicy", logGroupName=name, retentionInDays=days)
