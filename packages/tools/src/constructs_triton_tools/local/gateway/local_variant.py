"""A variant whose server is running."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from constructs_triton_tools.local.gateway.multi_model import MultiModelContainer
from constructs_triton_tools.local.gateway.runtime_errors import service_unavailable, validation_error
from constructs_triton_tools.local.running_container import Destination, RunningContainer
from constructs_triton_tools.local.sources.specs import VariantSpec


class LocalVariant:
    """A variant's server, and for a multi-model container the models that are loaded."""

    def __init__(
        self, spec: VariantSpec, server: RunningContainer, multi_model: MultiModelContainer | None
    ) -> None:
        self.spec = spec
        self.server = server
        self.multi_model = multi_model
        self._has_explained = False
        self._has_explained_encoding = False
        self._requests = 0

    @property
    def invoked_variant(self) -> str:
        """The variant that SageMaker reports to the caller."""
        return self.spec.name

    @property
    def log_group(self) -> str | None:
        """The log group of the containers in AWS, if it is not that of the endpoint."""
        return None

    @property
    def is_idle(self) -> bool:
        """Whether no request is in progress."""
        return self._requests == 0

    def explain(self, message: bytes) -> None:
        """Report once what the server's message means for the deployed endpoint."""
        if b"is not healthy" in message and not self._has_explained:
            self._has_explained = True
            self.server.report(
                f"{self.server.label}: a model ended its own process. Triton does not restart that process "
                "while /ping answers 200. On SageMaker too, the model fails until its container is replaced"
            )

    def explain_encoding(self, encoding: str | None) -> None:
        """Report once that SageMaker does not pass the header ``Content-Encoding`` on to a container."""
        if encoding and not self._has_explained_encoding:
            self._has_explained_encoding = True
            self.server.report(
                f"{self.server.label}: a request has Content-Encoding {encoding:.20}. SageMaker removes this "
                "header, so the container reads the encoded bytes; send the body without an encoding"
            )

    @asynccontextmanager
    async def use(self, target_model: str | None) -> AsyncIterator[Destination]:
        """Yield where the server receives a request, and keep its model loaded inside the block."""
        self._requests += 1
        try:
            async with self._destination(target_model) as destination:
                yield destination
        finally:
            self._requests -= 1

    @asynccontextmanager
    async def _destination(self, target_model: str | None) -> AsyncIterator[Destination]:
        if not self.server.is_ready:
            raise service_unavailable(
                f"The container of variant {self.invoked_variant} is starting; please try again"
            )
        if self.multi_model is None:
            if target_model is not None:
                raise validation_error("TargetModel is only accepted by multi-model endpoints; leave it out")
            yield self.server.invocations
            return
        if target_model is None:
            raise validation_error(
                "A multi-model endpoint needs TargetModel; set it to one of its archives. "
                + self.multi_model.archives_note()
            )
        async with self.multi_model.use(target_model) as path:
            yield Destination(self.server.session, self.server.url + path)
