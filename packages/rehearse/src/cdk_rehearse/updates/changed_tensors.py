"""What an update changes in the inputs and outputs of the models that callers use.

The files of a model that changes are given to the construct libraries that know its format. Triton
refuses a request with an unknown input, without a required one, or of another datatype or shape
(https://github.com/triton-inference-server/core, ``infer_request.cc``, ``Normalize``), and one for
an unknown output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from constructs_triton_core.findings import Severity
from constructs_triton_core.model_index import some_of
from constructs_triton_core.model_tensors import ModelTensor

from ..account import SimulatedAccount
from ..construct_libraries import construct_libraries
from .model_files import ModelFiles, ServedModel, contents_by_etag
from .problems import problem
from .report import Problem

__all__ = ["TensorChanges", "tensor_changes"]

_MOST_BYTES = 1024**3
"""Bytes of model files that one rehearsal reads; a change of larger ones is not compared."""
_noticed = partial(problem, "rehearse-callers-fail")
_FIX = "deploy the callers that send and read these together with the model, or give it a new name"

Tensors = Iterable[ModelTensor] | None


@dataclass(frozen=True)
class TensorChanges:
    """What callers notice, and which models could not be compared, with the reason."""

    noticed: tuple[Problem, ...]
    not_compared: tuple[str, ...]


def tensor_changes(
    account: SimulatedAccount,
    before: Mapping[ServedModel, ModelFiles | None],
    after: Mapping[ServedModel, ModelFiles | None],
) -> TensorChanges:
    """Compare the models that are served before and after an update.

    Args:
        account: The account after the update.
        before: The files of each model before it.
        after: The files of each model after it.
    """
    reader = _Reader(account)
    changes: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    unknown: dict[tuple[str, str], list[str]] = {}
    for served in sorted(before.keys() & after.keys()):
        old, new = before[served], after[served]
        if old is not None and old == new:
            continue
        name = served.model or served.part
        old_tensors, new_tensors = reader.tensors(old, served), reader.tensors(new, served)
        if isinstance(old_tensors, str) or isinstance(new_tensors, str):
            reason = old_tensors if isinstance(old_tensors, str) else str(new_tensors)
            unknown.setdefault((served.endpoint, reason), []).append(name)
            continue
        failing = tuple(_failing(old_tensors, new_tensors))
        harmless = tuple(_harmless(old_tensors, new_tensors))
        if failing or harmless:
            changes.setdefault((served.endpoint, failing, harmless), []).append(name)

    return TensorChanges(
        tuple(problem for place, names in changes.items() for problem in _problems(place, names)),
        tuple(
            f"inputs and outputs of {some_of(names)} of endpoint {endpoint}: {reason}"
            for (endpoint, reason), names in unknown.items()
        ),
    )


def _problems(
    change: tuple[str, tuple[str, ...], tuple[str, ...]], names: list[str]
) -> Iterator[Problem]:
    """Yield what callers notice of models that change in the same way."""
    endpoint, failing, harmless = change
    models = f"model {some_of(dict.fromkeys(names))}"
    if failing:
        text = f"endpoint {endpoint}, {models}: {'; '.join(failing)}"
        found = _noticed(f"endpoint {endpoint}, {models}", text, _FIX)
        yield replace(found, severity=Severity.WARNING)
    if harmless:
        yield _noticed("", f"endpoint {endpoint}, {models}: {'; '.join(harmless)}")


class _Reader:
    """Reads the tensors of models, up to a number of bytes."""

    def __init__(self, account: SimulatedAccount) -> None:
        self._objects = contents_by_etag(account)
        self._left = _MOST_BYTES

    def tensors(
        self, files: ModelFiles | None, served: ServedModel
    ) -> dict[tuple[str, str], ModelTensor] | str:
        """Return the tensors of a model by kind and name, or why they are not known."""
        if files is None:
            return "its files are not in the simulated account"
        if not self._objects.keys() >= set(files.etags.values()):
            return "its files are no longer in the simulated account"
        found = {path: self._objects[etag].value for path, etag in files.etags.items()}
        self._left -= sum(map(len, found.values()))
        if self._left < 0:
            return "the models that change have more than 1 GiB"

        for library in construct_libraries():
            tensors = library.tensors_of(found, served.model)
            if tensors is not None:
                return {(tensor.kind, tensor.name): tensor for tensor in tensors}
        return "neither its configuration nor its model file states them"


_ByName = Mapping[tuple[str, str], ModelTensor]


def _failing(old: _ByName, new: _ByName) -> Iterator[str]:
    """Yield the changes after which calls fail that worked before, or get other values."""
    for (kind, name), tensor in new.items():
        before = old.get((kind, name))
        if before is None:
            if kind == "input" and not tensor.is_optional:
                yield f'calls must send the new input "{name}", {tensor}'
        elif kind == "input" and not tensor.takes_all_of(before):
            yield f'input "{name}" is {tensor}, and was {before}'
        elif kind == "input" and before.is_optional and not tensor.is_optional:
            yield f'calls must send input "{name}", which was optional'
        elif kind == "output" and not before.takes_all_of(tensor):
            yield f'output "{name}" is {tensor}, and was {before}'
    for kind, name in old.keys() - new.keys():
        yield f'there is no {kind} "{name}" any more'


def _harmless(old: _ByName, new: _ByName) -> Iterator[str]:
    """Yield the changes that need no change of a caller."""
    for (kind, name), tensor in new.items():
        if (kind, name) in old:
            continue
        if kind == "output":
            yield f'the new output "{name}", {tensor}'
        elif tensor.is_optional:
            yield f'the new optional input "{name}", {tensor}'
