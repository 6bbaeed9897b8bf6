"""A warning about a construct that depends on what is added to it later."""

from __future__ import annotations

from collections.abc import Callable

import jsii
from aws_cdk import Annotations, Aspects, IAspect
from constructs import Construct, IConstruct

from constructs_triton_core.findings import Finding


def warn_at_synthesis(construct: Construct, find: Callable[[], Finding | None]) -> None:
    """Annotate a construct at synthesis with what ``find`` returns then."""
    Aspects.of(construct).add(_Warning(construct, find))


@jsii.implements(IAspect)
class _Warning:
    def __init__(self, construct: Construct, find: Callable[[], Finding | None]) -> None:
        self._path = construct.node.path
        self._find = find

    def visit(self, node: IConstruct) -> None:
        """Annotate the construct; other constructs below it are ignored."""
        if node.node.path != self._path:
            return
        finding = self._find()
        if finding is not None:
            Annotations.of(node).add_warning_v2(
                f"constructs-triton:{finding.code}", finding.one_line
            )
