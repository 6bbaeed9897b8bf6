"""Warnings about all components of an endpoint together, given at synthesis when all are known."""

from __future__ import annotations

import math
from collections.abc import Iterator

import jsii
from aws_cdk import IAspect, Stack
from constructs import Construct, IConstruct

from constructs_triton.cdk.inference_component.component_host import CreatedHost
from constructs_triton.cdk.inference_component.host_instances import ComponentCopies
from constructs_triton.cdk.repository.model_repository import annotate
from constructs_triton.cdk.scaling.checks import sequence_finding
from constructs_triton.cdk.scaling.scalable_copy_count import reaches_zero
from constructs_triton_core.facts.inference_components import (
    cloudformation_regions,
    is_without_zero_instances,
)
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.tokens import is_token


@jsii.implements(IAspect)
class FleetWarnings:
    """Annotates an endpoint with what its components need together."""

    def __init__(self, endpoint: Construct, host: CreatedHost, min_instance_count: float) -> None:
        self._endpoint = endpoint
        self._host = host
        self._min_instance_count = min_instance_count

    def visit(self, node: IConstruct) -> None:
        """Annotate the endpoint; other constructs below it are ignored."""
        if node.node.path == self._host.path and self._host.components:
            annotate(self._endpoint, list(self.findings()))

    def findings(self) -> Iterator[Finding]:
        """Yield what is wrong with the components together."""
        yield from self._too_many_copies()
        yield from self._too_little_memory()
        yield from self._no_room_for_an_update()
        yield from self._never_empty()
        yield from self._host.ami_findings()
        yield from self._scattered_sequences()

    def _scattered_sequences(self) -> Iterator[Finding]:
        for component in self._host.components:
            copies = component.at_maximum
            finding = sequence_finding(
                f"component {copies.name}", component.sequence_models, copies.copies, "copies"
            )
            if finding is not None:
                yield finding

    def _too_many_copies(self) -> Iterator[Finding]:
        """Warn if scaling may ask for more copies than the instances have room for."""
        at_maximum = [component.at_maximum for component in self._host.components]
        shortage = self._host.shortage(at_maximum)
        if shortage is not None:
            yield Finding(
                "component-copies-exceed-fleet",
                Severity.WARNING,
                "max_instance_count",
                f"the copies that scaling may ask for {shortage.reason}",
                "raise max_instance_count or lower max_capacity, or acknowledge this if the "
                f"components are not busy at the same time:\n{shortage.table}",
            )

    def _too_little_memory(self) -> Iterator[Finding]:
        """Yield a warning if the copies fit by what they reserve, and not by what they take.

        SageMaker places copies by their reservations (AWS API reference,
        InferenceComponentComputeResourceRequirements), so the instance runs out of memory.
        """
        at_maximum = [component.at_maximum for component in self._host.components]
        # A copy that no instance can hold has a warning of its own.
        copies = [each for each in at_maximum if self._host.can_hold(each)]
        shortage = self._host.shortage([each.as_used for each in copies])
        if shortage is None or self._host.shortage(copies) is not None:
            return

        # ``as_used`` is another object only for a component that reserves less than it uses.
        more = ", ".join(
            f"{math.ceil(each.used_memory_mib)} MiB for {each.name}"
            for each in copies
            if each.as_used is not each
        )
        yield Finding(
            "component-memory-exceeds-fleet",
            Severity.WARNING,
            "min_memory",
            "the models of the copies that scaling may ask for take more than min_memory: they "
            f"{shortage.reason}",
            f"set min_memory to at least {more}, so that SageMaker starts no more copies than "
            "fit; then raise max_instance_count, lower max_capacity, or use a larger type. This "
            f"is what the models take:\n{shortage.table}",
            source="packages/check/src/triton_model_check/facts/memory.json",
        )

    def _no_room_for_an_update(self) -> Iterator[Finding]:
        """Warn if the instances have no room for the new copies of a component during an update."""
        components = self._host.components
        when = ""
        names = self._without_room([component.initial for component in components])
        if not names:
            # If the copies exceed the fleet even without an update, another warning says so.
            at_maximum = [component.at_maximum for component in components]
            if self._host.shortage(at_maximum) is None:
                when = " when scaling has added its copies"
                names = self._without_room(at_maximum)

        if names:
            yield Finding(
                "component-update-without-room",
                Severity.WARNING,
                "max_instance_count",
                f"an update starts new copies beside the old ones, and{when} there is no room for "
                f"those of {', '.join(names)}",
                "raise max_instance_count, or acknowledge this if "
                "you delete the component before you change it",
                source=(
                    "AWS Machine Learning Blog, 2025-03-26: rolling updates of inference components"
                ),
            )

    def _without_room(self, copies: list[ComponentCopies]) -> list[str]:
        """The names of the components that have no room to be updated beside the copies of all."""
        names = []
        for number, updated in enumerate(self._host.components):
            during_update = list(copies)
            during_update[number] = updated.during_update(copies[number])
            if self._host.shortage(during_update) is not None:
                names.append(updated.initial.name)
        return names

    def _never_empty(self) -> Iterator[Finding]:
        """Warn if the endpoint may have 0 instances and a component always keeps a copy."""
        names = [
            component.initial.name
            for component in self._host.components
            if not reaches_zero(component.construct.scalable_copy_count)
        ]
        if self._min_instance_count == 0 and names:
            yield Finding(
                "component-keeps-instances",
                Severity.WARNING,
                "min_instance_count",
                f"0 instances are never reached, because {', '.join(names)} always has a copy",
                "call auto_scale_copy_count(min_capacity=0) on each component, "
                "or set min_instance_count=1",
                source="SageMaker developer guide: scale an endpoint to zero instances",
            )


def region_warnings(scope: Construct, min_instance_count: float) -> Iterator[Finding]:
    """Yield warnings about the Region of an endpoint, if it is known."""
    region = Stack.of(scope).region
    if is_token(region):
        return
    if region not in cloudformation_regions():
        yield Finding(
            "component-region",
            Severity.WARNING,
            "region",
            "CloudFormation had no inference components "
            f"in {region} when this library was released",
            "use another Region, or acknowledge this if CloudFormation has them now",
            source="cfn-lint: Regions of AWS::SageMaker::InferenceComponent",
        )
    if is_without_zero_instances(region) and min_instance_count == 0:
        yield Finding(
            "component-region-without-zero",
            Severity.WARNING,
            "min_instance_count",
            f"SageMaker refused a minimum of 0 instances in {region}",
            "set min_instance_count=1, or acknowledge this if SageMaker accepts 0 now",
            source="stdapi-ai/stdapi.ai#43, measured on 2026-08-27",
        )
