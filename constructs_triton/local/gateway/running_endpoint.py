"""An endpoint whose servers are running, and the variant that takes each request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from constructs_triton.local.gateway.multi_model import MultiModelContainer
from constructs_triton.local.gateway.runtime_errors import service_unavailable, validation_error
from constructs_triton.local.gateway.traffic import ShadowShare, TrafficShare
from constructs_triton.local.server.server import TritonServer
from constructs_triton.local.sources.specs import EndpointSpec, VariantSpec

__all__ = ["LocalVariant", "RunningEndpoint"]


class LocalVariant:
    """A variant's server, and its models' life cycle where it is a multi-model container."""

    def __init__(
        self, spec: VariantSpec, server: TritonServer, multi_model: MultiModelContainer | None
    ) -> None:
        self.spec = spec
        self.server = server
        self.multi_model = multi_model
        self._has_explained = False

    def explain(self, message: bytes) -> None:
        """Tell the user once what the server's words mean for the real endpoint."""
        if b"is not healthy" in message and not self._has_explained:
            self._has_explained = True
            self.server.settings.report(
                f"{self.server.label}: a model ended its process. The server does not start it again while "
                "/ping stays 200, so on SageMaker too it fails until the container or the model is replaced"
            )

    @asynccontextmanager
    async def use(self, target_model: str | None) -> AsyncIterator[str]:
        """Where on the server a request goes, while the block lasts. Raises ``RuntimeApiError``."""
        if not self.server.is_ready:
            raise service_unavailable(
                f"The container of variant {self.spec.name} is starting; please try again"
            )
        if self.multi_model is None:
            if target_model is not None:
                raise validation_error("TargetModel is only accepted by multi-model endpoints; leave it out")
            yield "/invocations"
            return
        if target_model is None:
            raise validation_error("A multi-model endpoint needs TargetModel; name one of its archives")
        async with self.multi_model.use(target_model) as path:
            yield path


class RunningEndpoint:
    """An endpoint whose servers are up."""

    def __init__(self, spec: EndpointSpec, variants: Sequence[LocalVariant]) -> None:
        self.spec = spec
        production = {variant.name for variant in spec.variants}
        self.variants = {each.spec.name: each for each in variants if each.spec.name in production}
        self._traffic = TrafficShare(spec.variants)
        self._shadows = [
            (each, ShadowShare(spec.variants[0], each.spec))
            for each in variants
            if each.spec.name not in production
        ]

    def choose(self, target_variant: str | None) -> LocalVariant:
        """The variant that takes a request: the one that is asked for, else by weight."""
        if target_variant is None:
            return self.variants[self._traffic.next()]
        if target_variant not in self.variants:
            raise validation_error(f"Variant {target_variant} not found for endpoint {self.spec.name}")
        return self.variants[target_variant]

    def shadows_of_next(self) -> tuple[LocalVariant, ...]:
        """The shadow variants that get a copy of the next request."""
        return tuple(shadow for shadow, share in self._shadows if share.takes_next())
