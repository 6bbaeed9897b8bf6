"""The names in a template: parameters, resources, outputs of other stacks, Availability Zones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from constructs_triton_core.cloud_assembly.intrinsics import EvaluationBudget, Evaluator
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_core.cloud_assembly.unknown_values import Unknown, UnknownList

from ..errors import TemplateError
from ..providers.opaque import other_attributes
from ..providers.provider import Deployed
from ..services.resource_schemas import resource_schema
from ..services.service_api import client
from .stack import Stack, Stacks


@dataclass(frozen=True)
class Names:
    """Resolves the names in the template of a stack.

    A name that is not known here may exist in AWS; its value is then unknown, and no error.
    """

    stacks: Stacks
    stack: Stack
    parameters: Mapping[str, Any]
    resources: Mapping[str, Deployed]

    def evaluator(self, template: Template, budget: EvaluationBudget | None = None) -> Evaluator:
        """Return what evaluates the values of a template with these names, as they are now."""
        return Evaluator(template, self, budget, self._unknown_function)

    def _unknown_function(self, name: str, value: Any) -> Unknown:
        api = self.stacks.api
        api.note_not_simulated("intrinsic function", self.stack.name, name)
        return api.stand_ins.other(json.dumps(value, sort_keys=True), name)

    def ref(self, name: str) -> Any:
        """Return the value of a pseudo parameter or parameter, or the physical ID of a resource."""
        if name in self.parameters:
            return self.parameters[name]
        pseudo = self._pseudo_parameters()
        if name in pseudo:
            return pseudo[name]
        if name in self.resources:
            return self.resources[name].physical.id
        if not self.stack.template.is_complete:
            return self.stacks.api.stand_ins.other("", name)
        raise TemplateError(
            f"Ref: nothing is called {name}, or it was not made because of its condition"
        )

    def _pseudo_parameters(self) -> dict[str, Any]:
        """Source: CloudFormation user guide, "Pseudo parameters reference"."""
        api = self.stacks.api
        return {
            "AWS::AccountId": api.account,
            "AWS::Region": api.region,
            "AWS::Partition": "aws",
            "AWS::URLSuffix": "amazonaws.com",
            "AWS::StackName": self.stack.name,
            "AWS::StackId": self.stack.id,
            "AWS::NotificationARNs": UnknownList("", []),
        }

    def get_att(self, logical_id: str, attribute: str) -> Any:
        """Return an attribute of an existing resource."""
        api = self.stacks.api
        if logical_id not in self.resources:
            if not self.stack.template.is_complete:
                return api.stand_ins.other("", f"{logical_id}.{attribute}")
            raise TemplateError(f"Fn::GetAtt: no resource is called {logical_id}")

        deployed = self.resources[logical_id]
        attributes = deployed.physical.attributes
        if attribute in attributes:
            return attributes[attribute]
        others = other_attributes(deployed, api)
        if attribute in others:
            return others[attribute]

        # Without a schema, a provider knows all attributes: it is a custom resource, for example.
        if resource_schema(deployed.request.type).attributes is None:
            raise TemplateError(
                f"Fn::GetAtt: {logical_id} has no attribute {attribute}, only {sorted(attributes)}"
            )

        # AWS adds attributes to types from time to time.
        what = f"attribute {attribute} of {deployed.request.type}"
        api.note_not_simulated(what, self.stack.name, logical_id)
        return api.stand_ins.other("", f"{logical_id}.{attribute}")

    def import_value(self, name: str) -> str:
        """Return the value of an export. One that no stack of this account has may exist in AWS."""
        exports = self.stacks.exports
        if name in exports:
            return exports[name]
        if isinstance(name, Unknown):
            return Unknown(name)
        if not self.stacks.api.assumes_existing:
            raise TemplateError(f"No export named {name} found")
        return self._unknown_output(name)

    def stack_output(self, stack: str, name: str, region: str | None) -> str:
        """Return an output of another stack, which can be in another account or Region."""
        api = self.stacks.api
        found = self.stacks.find(stack) if region in (None, api.region) else None
        if found is not None and name in found.output_values:
            return found.output_values[name]

        passed = self._passed_output(f"{stack}.{name}", region or api.region)
        if passed is None and found is None and api.all_regions_url is not None:
            passed = self._output_in(region or api.region, stack, name)
        if passed:
            return passed
        # A stack of this account and Region has only the outputs of its template.
        if passed is None and (found is not None or not api.assumes_existing):
            raise TemplateError(f"No output named {name} found in stack {stack}")
        return self._unknown_output(f"{stack}.{name}")

    def _output_in(self, region: str, stack: str, name: str) -> str | None:
        """An output of a stack in another Region of a served account, or ``None`` without one."""
        api = self.stacks.api
        cloudformation = client("cloudformation", api.all_regions_url or "", region)
        try:
            described = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
        except ClientError:
            return None
        for output in described.get("Outputs", ()):
            if output["OutputKey"] == name:
                return str(output["OutputValue"])
        return None

    def _passed_output(self, output: str, region: str) -> str | None:
        """What a stack of another account or Region passes; this account's comes first."""
        api = self.stacks.api
        own = api.passed.get((api.account, region, output))
        if own:
            return own
        for (_, other_region, other_output), value in api.passed.items():
            if (other_region, other_output) == (region, output):
                return value
        return None

    def availability_zones(self, region: str) -> list[str]:
        """Return the Availability Zones of the Region; those of other Regions are unknown."""
        api = self.stacks.api
        if region != api.region:
            zones = api.stand_ins.other("", f"Zones of {region}")
            return UnknownList(zones, [zones])
        found = api.client("ec2").describe_availability_zones()["AvailabilityZones"]
        return [zone["ZoneName"] for zone in found]

    def _unknown_output(self, name: str) -> str:
        api = self.stacks.api
        api.note_not_simulated("value of an export", "", name)
        return api.stand_ins.other("", name)
