"""Variants whose server is running, and the inference components that run on them."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from constructs_triton_core.facts.inference_components import (
    HEADER_NOT_ALLOWED,
    HEADER_REQUIRED,
    NO_CAPACITY,
)
from constructs_triton_tools.local.gateway.multi_model import MultiModelContainer
from constructs_triton_tools.local.gateway.runtime_errors import (
    RuntimeApiError,
    service_unavailable,
    validation_error,
)
from constructs_triton_tools.local.running_container import Destination, RunningContainer
from constructs_triton_tools.local.sources.specs import ComponentSpec, VariantSpec

# botocore's service model of sagemaker-runtime, shape InferenceComponentHeader.
_NAME = re.compile(r"[a-zA-Z0-9]([\-a-zA-Z0-9]*[a-zA-Z0-9])?")
_NAME_LENGTH = 63


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
                f"{self.server.label}: the process of a Python model ended. If native code "
                "crashed, faulthandler.enable() in model.py writes the line into the server's log, "
                "whose path `local up --json` prints. Triton does not restart that process while "
                "/ping answers 200. On SageMaker too, "
                "the model fails until its container is replaced"
            )

    def explain_encoding(self, encoding: str | None) -> None:
        """Report once that SageMaker does not pass the header ``Content-Encoding``
        on to a container.
        """
        if encoding and not self._has_explained_encoding:
            self._has_explained_encoding = True
            self.server.report(
                f"{self.server.label}: a request has Content-Encoding {encoding:.20}. SageMaker "
                "removes this header, so the container reads the encoded bytes; "
                "send the body without an encoding"
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
                raise validation_error(
                    "TargetModel is only accepted by multi-model endpoints; leave it out"
                )
            yield self.server.invocations
            return
        if target_model is None:
            raise validation_error(
                "A multi-model endpoint needs TargetModel; set it to one of its archives. "
                + self.multi_model.archives_note()
            )
        async with self.multi_model.use(target_model) as path:
            yield Destination(self.server.session, self.server.url + path)


class Copies:
    """The copies of a component.

    At zero, the first call starts the wake-up, which takes ``wake_seconds``.
    """

    def __init__(
        self, wake_seconds: float, *, is_at_zero: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._wake_seconds = wake_seconds
        self._clock = clock
        #: When the component has a copy. ``None`` until it is called.
        self._ready_at = None if is_at_zero else clock()

    @property
    def are_zero(self) -> bool:
        """Whether no call has started the wake-up."""
        return self._ready_at is None

    def are_ready(self) -> bool:
        """Return whether a copy can process a call now. The first call starts the wake-up."""
        if self._ready_at is None:
            self._ready_at = self._clock() + self._wake_seconds
        return self._clock() >= self._ready_at


class LocalComponent(LocalVariant):
    """A component's server, and whether it has copies."""

    spec: ComponentSpec

    def __init__(self, spec: ComponentSpec, server: RunningContainer, wake_seconds: float) -> None:
        super().__init__(spec, server, None)
        self.copies = Copies(wake_seconds, is_at_zero=spec.starts_at_zero)
        self._wake_seconds = wake_seconds

    @property
    def invoked_variant(self) -> str:
        """The variant that SageMaker reports to the caller."""
        return self.spec.variant_name

    @property
    def log_group(self) -> str:
        """The log group of the component's containers in AWS."""
        return f"/aws/sagemaker/InferenceComponents/{self.spec.name}"

    @asynccontextmanager
    async def _destination(self, target_model: str | None) -> AsyncIterator[Destination]:
        if target_model is not None:
            raise validation_error(
                "TargetModel is not accepted by inference components; leave it out"
            )
        self._expect_copies()
        async with super()._destination(None) as destination:
            yield destination

    def _expect_copies(self) -> None:
        if self.copies.are_zero:
            self.server.report(
                f"{self.server.label}: has zero copies; the first call wakes it in "
                f"{self._wake_seconds:g} s"
            )
        if not self.copies.are_ready():
            raise validation_error(NO_CAPACITY)


def choose_component(
    components: Mapping[str, LocalComponent],
    name: str | None,
    target_variant: str | None,
    not_run: Sequence[str] = (),
) -> LocalComponent:
    """Return the component for a request. ``not_run`` are those that do not run on this machine."""
    if name is None:
        raise RuntimeApiError(
            400, "ValidationError", HEADER_REQUIRED, ErrorCode="INFERENCE_COMPONENT_NAME_MISSING"
        )
    if len(name) > _NAME_LENGTH or not _NAME.fullmatch(name):
        raise validation_error(
            f"1 validation error detected: Value {name[:100]!r} at 'inferenceComponentName' failed "
            f"to satisfy constraint: at most {_NAME_LENGTH} letters, digits and hyphens"
        )
    if target_variant is not None:
        raise validation_error(
            "TargetVariant is not accepted beside InferenceComponentName; leave it out"
        )
    if name in not_run:
        raise validation_error(
            f"Inference Component {name} does not run on your machine, because its container is "
            "not Triton; call it in AWS"
        )
    if name not in components:
        raise validation_error(
            f"Inference Component {name} not found. "
            f"Inference components of this endpoint: {', '.join(components)}"
        )
    return components[name]


def refuse_component(name: str | None) -> None:
    """Reject a component's name on an endpoint whose variants have models."""
    if name is not None:
        raise validation_error(HEADER_NOT_ALLOWED)
