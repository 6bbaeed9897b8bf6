"""A warning about a construct that depends on what is added to it later."""

from __future__ import annotations

from collections.abc import Callable

import jsii
from aws_cdk import Annotations
from constructs import Construct, IValidation

from constructs_triton_core.findings import Finding


def warn_at_synthesis(construct: Construct, find: Callable[[], Finding | None]) -> None:
    """Annotate a construct at synthesis with what ``find`` returns then.

    The validation is called once, after the aspects; an aspect would be called for each construct
    below, across the border of the two languages.
    """
    construct.node.add_validation(_Warning(construct, find))


@jsii.implements(IValidation)
class _Warning:
    def __init__(self, construct: Construct, find: Callable[[], Finding | None]) -> None:
        self._construct = construct
        self._find = find

    def validate(self) -> list[str]:
        """Annotate the construct; a warning is no error of the validation."""
        finding = self._find()
        if finding is not None:
            Annotations.of(self._construct).add_warning_v2(
                f"constructs-triton:{finding.code}", finding.one_line
            )
        return []
