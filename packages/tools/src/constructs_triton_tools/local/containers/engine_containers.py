"""Creates the containers of a run that docker or podman runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from constructs_triton_tools.local.containers.container import EngineSettings, TritonContainer
from constructs_triton_tools.local.containers.engine import ContainerEngine
from constructs_triton_tools.local.containers.run_arguments import (
    image_of,
    refuse_unused,
    shared_memory_bytes,
)
from constructs_triton_tools.local.options import RunOptions
from constructs_triton_tools.local.server.memory import available_bytes
from constructs_triton_tools.local.sources.specs import EndpointSpec, VariantSpec, label_of

#: How long a container may take to answer its first ping, if the template sets no timeout. SageMaker waits
#: 8 minutes; an image that starts for the first time is slow on a laptop.
_STARTUP_TIMEOUT_SECONDS = 480.0


class EngineContainers:
    """Creates containers of the engine in ``options``. ``run_folder`` is deleted if the gateway is killed."""

    def __init__(
        self,
        options: RunOptions,
        specs: Sequence[EndpointSpec],
        report: Callable[[str], None],
        run_folder: Path,
    ) -> None:
        assert options.engine is not None
        refuse_unused(options.images, specs)
        engine = ContainerEngine(options.engine)
        self._memory_bytes = engine.memory_bytes()
        self._options = options
        timeout = options.invocation_timeout_seconds
        self._settings = EngineSettings(engine, report, timeout, options.is_exact, (run_folder,))

    def create(self, endpoint: EndpointSpec, variant: VariantSpec) -> TritonContainer:
        """Return the container of a variant, which is not started."""
        timeout = self._options.startup_timeout_seconds or variant.startup_timeout_seconds
        return TritonContainer(
            label_of(endpoint, variant),
            variant.container,
            self._settings,
            image_of(endpoint, variant, self._options.images),
            shared_memory_bytes(variant.instance_types, self._memory_bytes),
            timeout or _STARTUP_TIMEOUT_SECONDS,
        )

    def available_bytes(self) -> int:
        """Return how much memory containers can use; on macOS all of their virtual machine's."""
        if sys.platform != "linux":
            return self._memory_bytes
        return min(self._memory_bytes, available_bytes())
