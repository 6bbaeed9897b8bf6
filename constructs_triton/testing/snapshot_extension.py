"""Snapshots of stacks with syrupy."""

from __future__ import annotations

import datetime
from types import FunctionType, GeneratorType
from typing import TYPE_CHECKING, Any

from aws_cdk.assertions import Template

from constructs_triton.testing.stable_templates import stable_template
from constructs_triton_core.errors import InvalidValueError, MissingDependencyError

try:
    from syrupy.extensions.json import JSONSnapshotExtension

    from constructs_triton.testing.snapshot_report import SerializedTemplate
except ImportError as error:
    raise MissingDependencyError(
        f"snapshots: syrupy is not installed ({error}); run `pip install "
        "'constructs-triton[testing]'`"
    ) from None

# What syrupy writes with its content; tuples include named ones.
_WRITTEN = (
    *(str, int, float, dict, list, tuple, set, frozenset, GeneratorType),
    *(datetime.date, FunctionType),
)

if TYPE_CHECKING:
    from syrupy.types import PropertyFilter, PropertyMatcher, SerializableData, SerializedData


class TritonTemplateExtension(JSONSnapshotExtension):
    """Compares the stable template of a stack or an app with a JSON file for each snapshot.

    >>> def test_template(snapshot):  # doctest: +SKIP
    ...     assert stack == snapshot(extension_class=TritonTemplateExtension)

    ``pytest --snapshot-update`` writes the file. A construct stands for the stack that it is in.
    Stacks can be members of lists and dictionaries. Other values are written as JSON; a value that
    JSON cannot hold raises an error, because only the name of its class would be compared. A test
    that fails lists every difference, whatever the verbosity of pytest and whether it runs in CI.
    """

    def serialize(
        self,
        data: SerializableData,
        *,
        exclude: PropertyFilter | None = None,
        include: PropertyFilter | None = None,
        matcher: PropertyMatcher | None = None,
    ) -> SerializedData:
        """Return the JSON of a stable template, or of another value.

        Args:
            data: A stack, an app, a construct of a stack, or any value that JSON can hold.
            exclude: Properties to leave out; see syrupy.
            include: Properties to keep; see syrupy.
            matcher: Replaces values that change from run to run; see syrupy.

        Raises:
            InvalidValueError: a value is of a type that JSON cannot hold.
        """

        def comparable(*, data: Any, path: Any) -> Any:
            return _comparable(data if matcher is None else matcher(data=data, path=path))

        return SerializedTemplate(
            super().serialize(data, exclude=exclude, include=include, matcher=comparable)
        )


def _comparable(value: Any) -> Any:
    """Return a value whose whole content syrupy writes.

    syrupy writes an object of another type as the name of its class or as what its ``__repr__``
    returns, so that a change of the object may not change the snapshot.
    """
    if value is None or isinstance(value, _WRITTEN):
        return value
    if isinstance(value, Template) or hasattr(value, "node"):
        return stable_template(value)
    raise InvalidValueError(
        f"snapshot: must be a stack or a value of JSON, got {type(value).__name__}; pass a stack, "
        "an app or a construct, or convert the value to a dictionary"
    )
