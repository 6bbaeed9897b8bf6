"""What moto stores of each service, without its private members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from moto.backends import get_backend
from moto.core.botocore_stubber import MockRawResponse as RawResponse
from moto.s3.models import FakeKey

__all__ = ["RawResponse", "SageMakerStore", "objects_of", "stored"]

#: Services whose resources belong to no Region.
_GLOBAL = ("iam", "s3")
_backends: Any = cache(get_backend)  # the type depends on the service's name


def stored(service: str, account: str, region: str) -> Any:
    """Return what an account has of a service in a Region."""
    found = _backends(service)[account]["aws" if service in _GLOBAL else region]
    return SageMakerStore(found) if service == "sagemaker" else found


def objects_of(bucket: Any) -> dict[str, Any]:
    """Return the objects of a bucket by key; delete markers are none."""
    return {key: each for key, each in bucket.keys.items() if isinstance(each, FakeKey)}


@dataclass(frozen=True)
class SageMakerStore:
    """The endpoints, configurations and models of SageMaker, by name."""

    _backend: Any

    @property
    def endpoints(self) -> dict[str, Any]:
        found: dict[str, Any] = self._backend.endpoints
        return found

    @property
    def endpoint_configs(self) -> dict[str, Any]:
        found: dict[str, Any] = self._backend.endpoint_configs
        return found

    @property
    def models(self) -> dict[str, Any]:
        found: dict[str, Any] = self._backend._models
        return found

    def variants_started(
        self, endpoint: Any, variants: list[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """Return the variants of a configuration as an endpoint runs them, with their counts."""
        started: list[dict[str, Any]] = endpoint._process_production_variants(variants)
        return started
