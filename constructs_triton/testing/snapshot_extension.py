"""Snapshots of stacks with syrupy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Stack

from constructs_triton.testing.stable_templates import stable_template
from constructs_triton_core.errors import MissingDependencyError

try:
    from syrupy.extensions.json import JSONSnapshotExtension

    from constructs_triton.testing.snapshot_report import SerializedTemplate
except ImportError as error:
    raise MissingDependencyError(
        f"snapshots: syrupy is not installed ({error}); run `pip install "
        "'constructs-triton[testing]'`"
    ) from None

if TYPE_CHECKING:
    from syrupy.types import PropertyFilter, PropertyMatcher, SerializableData, SerializedData


class TritonTemplateExtension(JSONSnapshotExtension):
    """Compares a stack's stable template with a JSON file, one for each snapshot.

    >>> def test_template(snapshot):  # doctest: +SKIP
    ...     assert stack == snapshot(extension_class=TritonTemplateExtension)

    ``pytest --snapshot-update`` writes the file. Other values than stacks are written as JSON. A
    test that fails lists every difference, whatever the verbosity of pytest and whether it runs in
    CI.
    """

    def serialize(
        self,
        data: SerializableData,
        *,
        exclude: PropertyFilter | None = None,
        include: PropertyFilter | None = None,
        matcher: PropertyMatcher | None = None,
    ) -> SerializedData:
        """Return the JSON of a stack's stable template, or of another value.

        Args:
            data: A stack, or any value that syrupy can write as JSON.
            exclude: Properties to leave out; see syrupy.
            include: Properties to keep; see syrupy.
            matcher: Replaces values that change from run to run; see syrupy.
        """
        shown = stable_template(data) if isinstance(data, Stack) else data
        return SerializedTemplate(
            super().serialize(shown, exclude=exclude, include=include, matcher=matcher)
        )
