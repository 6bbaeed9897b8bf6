"""The inputs and outputs of a model, as its callers send and receive them."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["ModelTensor"]


class ModelTensor(NamedTuple):
    """An input or an output of a model.

    Args:
        kind: ``input`` or ``output``.
        name: Name of the tensor.
        datatype: Datatype as in a request, such as ``FP32``.
        shape: Length of each axis, the batch first if the model has one; -1 for any length.
        is_optional: Whether requests may leave this input out.
    """

    kind: Literal["input", "output"]
    name: str
    datatype: str
    shape: tuple[int, ...]
    is_optional: bool = False

    def __str__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        return f"{self.datatype} [{shape}]"

    def takes_all_of(self, other: ModelTensor) -> bool:
        """Whether whatever ``other`` takes or returns fits this tensor too.

        Args:
            other: A tensor of the same name in another version of the model.
        """
        if (self.datatype, len(self.shape)) != (other.datatype, len(other.shape)):
            return False
        axes = zip(self.shape, other.shape, strict=True)
        return all(length in (-1, other_length) for length, other_length in axes)
