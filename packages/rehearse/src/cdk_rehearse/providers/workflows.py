"""Step Functions: state machine. EventBridge Scheduler: schedule."""

from __future__ import annotations

from ..errors import NotSimulatedError
from .provider import Deployed, Physical, Provider, Request

__all__ = ["PROVIDERS"]

_SAME = {"RoleArn": "roleArn", "DefinitionString": "definition", "StateMachineType": "type"}


class StateMachine(Provider):
    type = "AWS::StepFunctions::StateMachine"
    name_property = "StateMachineName"
    name_limit = 80

    def create(self, request: Request) -> Physical:
        if "DefinitionString" not in request.properties:
            raise NotSimulatedError(f"{self.type}: a definition outside DefinitionString is not simulated")
        simulated = self.simulated(request, *_SAME, "StateMachineName")
        wanted = {_SAME[name]: value for name, value in simulated.items() if name in _SAME}
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


class Schedule(Provider):
    """A schedule, which never starts by itself: a simulated account has no clock."""

    type = "AWS::Scheduler::Schedule"
    name_property = "Name"
    name_limit = 64

    def create(self, request: Request) -> Physical:
        name = self.name(request)
        wanted = {**request.properties, "Name": name}
        return Physical(name, {"Arn": self.api.call("scheduler", "CreateSchedule", **wanted)["ScheduleArn"]})

    def update(self, current: Deployed, request: Request) -> Physical:
        wanted = {**request.properties, "Name": current.physical.id}
        self.api.call("scheduler", "UpdateSchedule", **wanted)
        return current.physical

    def delete(self, current: Deployed) -> None:
        group = current.properties.get("GroupName", "default")
        self.api.call("scheduler", "DeleteSchedule", Name=current.physical.id, GroupName=group)


PROVIDERS = (StateMachine, Schedule)
