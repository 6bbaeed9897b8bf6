"""Writes a first ``model.py`` for a configuration: it runs, and answers with zeros or streams them.

``first_model.txt`` and ``first_decoupled_model.txt`` are its templates.
"""

from __future__ import annotations

import json
import keyword
import pkgutil
import re
from collections.abc import Iterable, Iterator
from typing import Any

from constructs_triton_core.datatypes import Datatype, by_data_type
from constructs_triton_core.errors import InvalidValueError

_INDENT = " " * 8
_OTHER_NAMES = ("_", "len", "np", "outputs", "pb_utils", "range", "request", "self")


def first_code(config: Any) -> str:
    """Return a ``model.py`` that answers each request with zeros of the data types and dims in
    ``config``.

    The code of a decoupled model sends several responses to each request, and then the final flag.
    A size of -1 becomes 1. ``config`` is a ``ModelConfig`` with inputs and outputs.
    """
    tensors = (*config.input, *config.output)
    _refuse_bf16(tensors)
    variables = _variables(tensor.name for tensor in tensors)
    inputs = list(zip(config.input, variables, strict=False))
    outputs = list(zip(config.output, variables[len(inputs) :], strict=True))

    body = [
        f"{variable} = pb_utils.get_input_tensor_by_name(request, "
        f"{json.dumps(tensor.name)}).as_numpy()"
        for tensor, variable in inputs
    ]
    body += _zeros(outputs, variables[0] if config.max_batch_size else None)
    responses = [
        f"pb_utils.Tensor({json.dumps(tensor.name)}, {variable})," for tensor, variable in outputs
    ]

    policy = config.model_transaction_policy
    is_decoupled = policy is not None and policy.decoupled
    indent = _INDENT + " " * (8 if is_decoupled else 4)
    template = "first_decoupled_model.txt" if is_decoupled else "first_model.txt"
    code = (pkgutil.get_data(__package__, template) or b"").decode()
    return code.format(
        name=json.dumps(config.name),
        body="\n".join(f"{_INDENT}{line}" for line in body),
        tensors="\n".join(f"{indent}{line}" for line in responses),
    )


def _refuse_bf16(tensors: Iterable[Any]) -> None:
    """Raise ``InvalidValueError`` if a tensor has a data type that NumPy lacks."""
    for tensor in tensors:
        if tensor.data_type == "TYPE_BF16":
            raise InvalidValueError(
                f'tensor "{tensor.name}": NumPy has no BF16, so no model.py can be written; use '
                "FP32, or pass your own FILE.py in place of the name"
            )


def _zeros(outputs: list[tuple[Any, str]], batched: str | None) -> Iterator[str]:
    """The size of the batch is that of the first input."""
    for tensor, variable in outputs:
        sizes = [] if batched is None else [f"len({batched})"]
        sizes += [str(max(size, 1)) for size in tensor.dims]
        shape = f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
        datatype = by_data_type(tensor.data_type)
        assert datatype is not None
        yield f"{variable} = {_zeros_of(datatype, shape)}"


def _zeros_of(datatype: Datatype, shape: str) -> str:
    if datatype.item_size is None:
        return f'np.full({shape}, b"", "object")'
    return f'np.zeros({shape}, "{datatype.datatype.lower().replace("fp", "float")}")'


def _variables(names: Iterable[str]) -> list[str]:
    """Return a name of Python for each tensor, which is the tensor's own name if possible."""
    taken: list[str] = []
    for name in names:
        variable = re.sub(r"\W", "_", name, flags=re.ASCII)
        if not variable.isidentifier():
            variable = f"tensor_{variable}"
        while keyword.iskeyword(variable) or variable in (*_OTHER_NAMES, *taken):
            variable += "_"
        taken.append(variable)
    return taken
