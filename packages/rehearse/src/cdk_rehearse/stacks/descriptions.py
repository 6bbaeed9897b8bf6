"""Stacks, their events and their resources as CloudFormation's API describes them."""

from __future__ import annotations

from typing import Any

from .stack import Event, Stack


def described(stack: Stack) -> dict[str, Any]:
    """Return a stack as ``DescribeStacks`` does."""
    outputs = [
        {
            "OutputKey": output.key,
            "OutputValue": stack.shown(output.value),
            "Description": output.description or None,
            "ExportName": output.export_name,
        }
        for output in stack.outputs
    ]
    parameters = {
        name: stack.given.get(name, declaration.get("Default", ""))
        for name, declaration in stack.template.parameters.items()
    }
    return {
        "StackId": stack.id,
        "StackName": stack.name,
        "CreationTime": stack.created,
        "StackStatus": stack.status,
        "StackStatusReason": stack.reason or None,
        "DisableRollback": False,
        "EnableTerminationProtection": stack.termination_protection,
        "Parameters": parameter_pairs(parameters),
        "Outputs": outputs,
        "Tags": stack.tags,
    }


def described_events(stack: Stack) -> list[dict[str, Any]]:
    """Return the events of a stack as ``DescribeStackEvents`` does, newest first."""
    return [
        {
            "EventId": event.id,
            "StackId": stack.id,
            "StackName": stack.name,
            "LogicalResourceId": event.logical_id,
            "PhysicalResourceId": event.physical_id,
            "ResourceType": event.type,
            "ResourceStatus": event.status,
            "ResourceStatusReason": event.reason or None,
            "Timestamp": event.timestamp,
        }
        for event in reversed(stack.events)
    ]


def described_resources(stack: Stack) -> list[dict[str, Any]]:
    """Return the resources of a stack as ``DescribeStackResources`` does."""
    last = _last_events(stack)
    return [
        {
            "StackId": stack.id,
            "StackName": stack.name,
            "LogicalResourceId": name,
            "PhysicalResourceId": deployed.physical.id,
            "ResourceType": deployed.request.type,
            "ResourceStatus": last[name].status,
            "Timestamp": last[name].timestamp,
            "LastUpdatedTimestamp": last[name].timestamp,
        }
        for name, deployed in stack.resources.items()
    ]


def _last_events(stack: Stack) -> dict[str, Event]:
    """The last event of each resource that exists.

    A replaced resource has events too. Its deletion is not the status of its successor.
    """
    last = {}
    for event in stack.events:
        deployed = stack.resources.get(event.logical_id)
        if deployed is not None and event.physical_id in ("", deployed.physical.id):
            last[event.logical_id] = event
    return last


def parameter_pairs(parameters: dict[str, str]) -> list[dict[str, str]]:
    """Return the values of parameters as the API lists them."""
    return [{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()]
