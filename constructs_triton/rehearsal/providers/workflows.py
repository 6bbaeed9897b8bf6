"""Step Functions: state machine."""

from __future__ import annotations

from typing import Any

from ..errors import StackError
from .provider import Deployed, Physical, Provider, Request

__all__ = ["PROVIDERS"]

_SAME = {"RoleArn": "roleArn", "DefinitionString": "definition", "StateMachineType": "type"}


class StateMachine(Provider):
    type = "AWS::StepFunctions::StateMachine"
    name_property = "StateMachineName"
    name_limit = 80

    def create(self, request: Request) -> Physical:
        unknown = sorted(request.properties.keys() - _SAME.keys() - {"StateMachineName"})
        if unknown:
            raise StackError(f"{self.type}: {unknown} is not simulated")
        wanted: dict[str, Any] = {
            _SAME[name]: value for name, value in request.properties.items() if name in _SAME
        }
        name = self.name(request)
        arn = self.api.call("stepfunctions", "CreateStateMachine", **wanted, name=name)["stateMachineArn"]
        return Physical(arn, {"Arn": arn, "Name": name})

    def update(self, current: Deployed, request: Request) -> Physical:
        wanted = {_SAME[name]: request.properties[name] for name in ("RoleArn", "DefinitionString")}
        arn = current.physical.id
        self.api.call("stepfunctions", "UpdateStateMachine", **wanted, stateMachineArn=arn)
        return current.physical

    def delete(self, current: Deployed) -> None:
        self.api.call("stepfunctions", "DeleteStateMachine", stateMachineArn=current.physical.id)


PROVIDERS = (StateMachine,)
