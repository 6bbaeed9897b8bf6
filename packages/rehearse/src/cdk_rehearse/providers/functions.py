"""Lambda functions, their permissions, and custom resources."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from ..construct_libraries import is_named_as_library, library_handler
from ..custom_resources.functions import Answers
from ..errors import NotSimulatedError, StackError
from ..existing import assume_role, assume_sources
from ..services.service_api import ServiceApi
from .called import CalledResource
from .provider import (
    Deployed,
    Physical,
    Provider,
    Request,
    ResourceFailedError,
    tags_as_map,
    without,
)

_POLL_SECONDS = 0.005
_DEFAULT_TIMEOUT_SECONDS = 3600
_OTHER_VERSION = "functions of another version of the library, whose results are assumed"


class Function(Provider):
    type = "AWS::Lambda::Function"
    name_property = "FunctionName"
    name_limit = 64
    deletion = ("lambda", "DeleteFunction", "FunctionName")

    def create(self, request: Request) -> Physical:
        """Create the function; its code must run and its role must be assumable."""
        code = self._code(request)
        self._expect_running(request, code)
        wanted = {**request.properties, "FunctionName": self.name(request), "Code": code}
        if "Tags" in wanted:
            wanted["Tags"] = tags_as_map(wanted["Tags"])
        assume_role(self.api, request.properties["Role"])
        found = self.api.call("lambda", "CreateFunction", **wanted)
        return Physical(found["FunctionName"], {"Arn": found["FunctionArn"]})

    def update(self, current: Deployed, request: Request) -> Physical:
        """Change the code and the configuration of the function."""
        name = current.physical.id
        if current.properties["Code"] != request.properties["Code"]:
            code = self._code(request)
            self._expect_running(request, code)
            self.api.call("lambda", "UpdateFunctionCode", FunctionName=name, **code)
        settings = without(request.properties, "Code", "Tags", "FunctionName")
        self.api.call("lambda", "UpdateFunctionConfiguration", FunctionName=name, **settings)
        return current.physical

    def _code(self, request: Request) -> dict[str, Any]:
        """The location of the code; inline code of the template becomes ``index.py``."""
        code: dict[str, Any] = dict(request.properties["Code"])
        if not str(request.properties.get("Runtime")).startswith("python"):
            raise NotSimulatedError(f"{self.type}: only Python runs in a simulated account")
        if "ZipFile" in code:
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w") as archive:
                archive.writestr("index.py", code["ZipFile"])
            code["ZipFile"] = buffer.getvalue()
        return code

    def _expect_running(self, request: Request, code: Mapping[str, Any]) -> None:
        """Raise ``NotSimulatedError`` unless the account runs this code."""
        if self.api.runs_all_functions:
            return
        if "S3Key" not in code:
            raise NotSimulatedError(
                f"{self.type}: {request.logical_id} is not a function of this library"
            )
        found = self.api.call("s3", "GetObject", Bucket=code["S3Bucket"], Key=code["S3Key"])
        if library_handler(found["Body"].read()) is None:
            if is_named_as_library(str(request.properties.get("Handler"))):
                self.api.note_not_simulated(_OTHER_VERSION, request.stack_name, request.logical_id)
            raise NotSimulatedError(
                f"{self.type}: {request.logical_id} is not a function of this library"
            )


class Permission(CalledResource):
    """A statement in the policy of a function, whose name is its physical ID."""

    type = "AWS::Lambda::Permission"
    name_property = "StatementId"
    service = "lambda"
    create_operation = "AddPermission"
    delete_operation = "RemovePermission"

    def physical(self, found: Mapping[str, Any]) -> Physical:
        statement = str(found["StatementId"])
        return Physical(statement, {"Id": statement})

    def key(self, current: Deployed) -> dict[str, Any]:
        function = current.properties["FunctionName"]
        return {"FunctionName": function, "StatementId": current.physical.id}


class CustomResource(Provider):
    """Sends CloudFormation's request to the function and waits for its response."""

    def __init__(self, api: ServiceApi, answers: Answers) -> None:
        super().__init__(api)
        self._answers = answers

    def create(self, request: Request) -> Physical:
        return self._ask("Create", request)

    def update(self, current: Deployed, request: Request) -> Physical:
        return self._ask("Update", request, current)

    def delete(self, current: Deployed) -> None:
        self._ask("Delete", current.request, current)

    def _ask(self, kind: str, request: Request, current: Deployed | None = None) -> Physical:
        """Send an event to the function, and return what it responds."""
        token = self._answers.expect()
        event = {
            "RequestType": kind,
            "ServiceToken": request.properties["ServiceToken"],
            "ResponseURL": self._answers.url(token),
            "StackId": request.stack_id,
            "RequestId": str(uuid4()),
            "LogicalResourceId": request.logical_id,
            "ResourceType": request.type,
            "ResourceProperties": _sent(request.properties),
        }
        if current is not None:
            event["PhysicalResourceId"] = current.physical.id
            if kind == "Update":
                event["OldResourceProperties"] = _sent(current.properties)

        # The library's own functions read their sources. A resource with a token alone has none.
        if kind != "Delete" and event["ResourceProperties"].keys() != {"ServiceToken"}:
            assume_sources(self.api, request.type, request.properties)

        self._invoke(event)
        answer = self._wait(token, request)
        if self._is_delivered_twice(event):
            self._invoke(event)
            self._wait_until_idle()
        return self._read(answer, current)

    def _is_delivered_twice(self, event: dict[str, Any]) -> bool:
        """Whether AWS sends an event again, as it may do with each asynchronous invocation."""
        behaviour = self.api.behaviour
        if not behaviour.duplicates_events:
            return False
        drawn = behaviour.draw("duplicate", event["LogicalResourceId"], event["RequestType"])
        return drawn < 0.5

    def _wait_until_idle(self) -> None:
        while not self._answers.functions_are_idle():
            time.sleep(_POLL_SECONDS)

    def _invoke(self, event: dict[str, Any]) -> None:
        function = event["ServiceToken"].rpartition(":")[2]
        payload = json.dumps(event).encode()
        self.api.call(
            "lambda", "Invoke", FunctionName=function, InvocationType="Event", Payload=payload
        )

    def _wait(self, token: str, request: Request) -> dict[str, Any]:
        """Wait for a response; raises ``StackError`` if none can come any more."""
        timeout = float(request.properties.get("ServiceTimeout", _DEFAULT_TIMEOUT_SECONDS))
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            # This is asked first, since a response may arrive in between.
            is_idle = self._answers.functions_are_idle()
            answer = self._answers.take(token)
            if answer is not None:
                return answer
            if is_idle:
                raise StackError(
                    "CloudFormation did not receive a response from your Custom Resource"
                )
            time.sleep(_POLL_SECONDS)
        raise StackError(f"CloudFormation did not receive a response within {timeout:g} seconds")

    def _read(self, answer: dict[str, Any], current: Deployed | None) -> Physical:
        """Return the physical resource of a response; raises if it says FAILED."""
        physical_id = answer["PhysicalResourceId"]
        if answer["Status"] == "SUCCESS":
            return Physical(physical_id, answer.get("Data") or {})
        reason = (
            "Received response status [FAILED] from custom resource. "
            f"Message returned: {answer.get('Reason')}"
        )
        if current is None:
            raise ResourceFailedError(reason, Physical(physical_id))
        raise StackError(reason)


def _sent(properties: Mapping[str, Any]) -> Any:
    """The properties that a function receives; the timeout is CloudFormation's own."""
    return _as_texts(without(properties, "ServiceTimeout"))


def _as_texts(value: Any) -> Any:
    """CloudFormation passes every scalar to a custom resource as a string."""
    if isinstance(value, dict):
        return {name: _as_texts(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_as_texts(item) for item in value]
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
