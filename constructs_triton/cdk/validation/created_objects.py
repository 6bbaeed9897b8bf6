"""Classes whose functions create their objects, such as ``ModelSource.from_directory``."""

from __future__ import annotations

from abc import ABC
from typing import Self

from constructs_triton.cdk.validation.property_types import shown
from constructs_triton_core.errors import InvalidValueError


class CreatedByFunctions(ABC):
    """Names one of its functions if the class itself is called.

    Python would say only that the class takes no arguments, or that it is abstract. ``_example`` of
    a class is such a call; the classes of the objects have none.
    """

    _example: str

    def __new__(cls, *given: object, **_: object) -> Self:
        example = vars(cls).get("_example")
        if example is not None:
            values = ", ".join(map(shown, given))
            raise InvalidValueError(
                f"{cls.__name__}: is created by one of its functions, "
                f"got {cls.__name__}({values}); write {example}"
            )
        return super().__new__(cls)
