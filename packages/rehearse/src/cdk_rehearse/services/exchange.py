"""The values that stacks of a rehearsal pass to stacks of other accounts and Regions.

One account and Region is simulated after the other, so what one of them passes on is kept for the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Place = tuple[str, str, str]
"""Account, Region and the name of an SSM parameter, or of a stack and its output as ``<stack>.<output>``."""


@dataclass
class Exchange:
    """What the stacks of one version pass to those of other accounts and Regions.

    The first value of a place is kept, since a repetition of the same deployment generates other names.

    Args:
        parameters: Values that the CDK's ``cross_region_references`` writes; both versions share them.
        outputs: Values that ``Fn::GetStackOutput`` reads.
        imported: The parameters that stacks of this version read, with the names of these stacks.
        is_guarded: Whether the CDK's function refuses to change what is read. aws-cdk-lib 2.253 removed this.
        stale: The parameters that the function left with their former values.
    """

    parameters: dict[Place, str] = field(default_factory=dict)
    outputs: dict[Place, str] = field(default_factory=dict)
    imported: Mapping[Place, str] = field(default_factory=dict)
    is_guarded: bool = False
    stale: set[Place] = field(default_factory=set)

    def output(self, account: str, region: str, name: str) -> str | None:
        """Return an output; that of the own account if stacks of several accounts have it."""
        others = (value for place, value in self.outputs.items() if place[1:] == (region, name))
        return self.outputs.get((account, region, name)) or next(others, None)
