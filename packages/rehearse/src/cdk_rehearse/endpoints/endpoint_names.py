"""Names and ARNs of endpoints as SageMaker has them, where moto differs.

* ARNs have the name in lower case; descriptions and metrics have it as it was given (github
  aws/amazon-sagemaker-examples issue 293 shows the output of ``list-endpoints``; philschmid/
  cdk-samples issue 2 shows a refused call: IAM compares the ARN letter by letter).
* Names are unique without regard to case (API reference: CreateEndpoint), so a request finds an
  endpoint in any case.

Which letters the ARNs of models, configurations and components have is not known: moto's stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.sagemaker.models import FakeEndpoint, SageMakerModelBackend

from ..replacement import replaced, wrapped


class _NamesInAnyCase(dict[str, Any]):
    """Endpoints by name: found in any case, listed with the names that they were given."""

    def __getitem__(self, name: str) -> Any:
        return super().__getitem__(self._given(name))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(self._given(name))

    def __delitem__(self, name: str) -> None:
        super().__delitem__(self._given(name))

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(self._given(name), default)

    def pop(self, name: str, *default: Any) -> Any:
        return super().pop(self._given(name), *default)

    def _given(self, name: str) -> str:
        return next((each for each in self if each.lower() == name.lower()), name)


def patches() -> list[Any]:
    """All patches."""
    formatter = FakeEndpoint.arn_formatter
    return [
        replaced(
            FakeEndpoint,
            "arn_formatter",
            staticmethod(lambda name, *place: formatter(name.lower(), *place)),
        ),
        wrapped(SageMakerModelBackend, "__init__", _with_names_in_any_case),
    ]


def _with_names_in_any_case(
    original: Callable[..., None], backend: Any, *given: Any, **named: Any
) -> None:
    original(backend, *given, **named)
    backend.endpoints = _NamesInAnyCase()
