"""Decodes inference responses into arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from constructs_triton_client.wire.dtypes import Buffer, bfloat16
from constructs_triton_client.wire.json_text import read_header, read_list, read_object, read_string
from constructs_triton_client.wire.tensors import TensorReader
from constructs_triton_core.errors import ResponseDecodingError
from constructs_triton_core.spelling import quoted

__all__ = ["Classification", "InferenceResult", "decode_response"]

#: Methods of the result of tritonclient, which users may expect.
_OF_TRITONCLIENT = frozenset({"as_numpy", "get_output", "get_response"})


class Classification(NamedTuple):
    """One class of a classification.

    Args:
        score: Score of the class as the model returned it.
        class_index: Index of the class in the output, from 0.
        label: Line of the file ``label_filename`` for the class; empty if the output has no labels.
    """

    score: float
    class_index: int
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class InferenceResult(Mapping[str, NDArray[Any]]):
    """The outputs of one inference: a mapping of names to arrays, in the order of the response.

    Arrays of numbers are read-only views of the response. They may be unaligned, so copy one before
    heavy arithmetic. BYTES outputs are object arrays of ``bytes``.

    Args:
        arrays: Output arrays by name.
        datatypes: KServe v2 datatype of each output, such as ``"FP32"``.
        model_name: Model that answered, as the response names it.
        model_version: Version that answered, such as ``"1"``.
        id: The ``id`` of the request; empty if it had none.
        parameters: Parameters that the model returned.
        latency_seconds: Time from sending the request to reading the whole response, boto3's
            retries included; ``None`` if no request was sent.
        metadata: What InvokeEndpoint returned besides the body, under its names, such as
            ``InvokedProductionVariant``.
    """

    arrays: Mapping[str, NDArray[Any]]
    datatypes: Mapping[str, str] = field(default_factory=dict)
    model_name: str = ""
    model_version: str = ""
    id: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    latency_seconds: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> NDArray[Any]:
        try:
            return self.arrays[name]
        except KeyError:
            outputs = f"its outputs are {quoted(self.arrays)}" if self.arrays else "it has none"
            # Without single quotes, because Python puts the message of a KeyError into them.
            raise KeyError(
                f'result["{name}"]: the response has no such output; {outputs}'
            ) from None

    if not TYPE_CHECKING:  # otherwise type checkers would accept every attribute

        def __getattr__(self, name: str) -> None:
            fix = ""
            if name in _OF_TRITONCLIENT:
                output = next(iter(self.arrays), "OUTPUT")
                fix = f'; write result["{output}"], which is an array'
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}{fix}",
                name=name,
                obj=self,
            )

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    @property
    def bit_patterns(self) -> frozenset[str]:
        """Names of the BF16 outputs that are ``uint16`` bit patterns because ``ml_dtypes`` is
        missing.

        ``pip install 'constructs-triton-client[bfloat16]'`` installs it.
        """
        return frozenset(
            name
            for name, datatype in self.datatypes.items()
            if datatype == "BF16" and bfloat16() is None
        )

    def classifications(self, name: str) -> list[list[Classification]]:
        """Return the classes of an output requested with ``class_count``: one list per batch
        element.

        Args:
            name: Name of the output.

        Raises:
            KeyError: the response has no such output.
            ResponseDecodingError: an element is not ``value:index:label``.
        """
        array = self[name]
        # One row for each item of a batch; a single value is one row.
        shape = (prod(array.shape[:-1]), array.shape[-1]) if array.ndim else (1, 1)
        rows = array.reshape(shape)
        return [[_parse_classification(name, value) for value in row] for row in rows]


def decode_response(body: Buffer, content_type: str) -> InferenceResult:
    """Decode the outputs of a response.

    Sizes in the response are compared with the size of the body before memory is allocated.

    Args:
        body: The whole response. Arrays of numbers are views of it.
        content_type: ``ContentType`` that InvokeEndpoint returned; it contains the size of the JSON
            at the start.

    Raises:
        ResponseDecodingError: the response is malformed; the message names the output and the byte.
    """
    view = memoryview(body).cast("B")
    header, header_size = read_header(view, content_type)
    if "error" in header:
        raise ResponseDecodingError(
            f"response: has an error instead of outputs, got {str(header['error'])[:200]}; "
            "see the endpoint's log"
        )
    arrays, datatypes = TensorReader(view, header_size).read_all(read_list(header, "outputs"))
    return InferenceResult(
        arrays,
        datatypes,
        model_name=read_string(header, "model_name"),
        model_version=read_string(header, "model_version"),
        id=read_string(header, "id"),
        parameters=read_object(header, "parameters"),
    )


def _parse_classification(name: str, value: object) -> Classification:
    """Return the class in an element ``value:index:label``."""
    try:
        score, index, *label = value.decode().split(":", 2)  # type: ignore[attr-defined]  # caught below
        return Classification(float(score), int(index), label[0] if label else "")
    except (AttributeError, ValueError):
        raise ResponseDecodingError(
            f'output "{name}": a class must be value:index:label, got {value!r:.80}; '
            "request the output with RequestedOutput(name, class_count=...)"
        ) from None
