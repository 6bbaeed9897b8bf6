"""The options of ``local up``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from constructs_triton.facts.limits import INVOCATION_TIMEOUT_SECONDS

__all__ = ["DEFAULT_WAKE_SECONDS", "RunOptions"]

#: SageMaker takes minutes. A few seconds let a client's retries be tested.
DEFAULT_WAKE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of ``local up``. ``source`` is a cloud assembly, a repository or an archive.

    With ``aws_endpoint_url`` the deployed endpoints are run instead of those of ``source``. ``port`` 0 means
    any free port. ``bucket_folder`` takes the place of S3 for asynchronous endpoints and for archives that
    other programs put under the prefix of a multi-model endpoint. With
    ``allows_open_ports`` servers listen on all network interfaces if the platform has no private addresses.
    With ``watches`` the endpoints are replaced when files of ``source`` change.
    ``substitutes`` are the ONNX files and Python models that run in the place of others, by model name.
    With ``engine``, ``docker`` or ``podman``, containers of the template's images run instead of the bundled
    server. ``images`` are images to use instead, by endpoint, by ``endpoint/variant``, by
    ``endpoint/component`` or by image. ``wake_seconds`` is how long an inference component with zero copies
    takes to wake after its first call.
    """

    source: Path
    aws_endpoint_url: str | None = None
    stack: str | None = None
    endpoint: str | None = None
    model: str | None = None
    is_multi_model: bool = False
    port: int = 8080
    python: Path | None = None
    tritonserver: Path | None = None
    memory_limit_bytes: int | None = None
    startup_timeout_seconds: float | None = None
    invocation_timeout_seconds: float = INVOCATION_TIMEOUT_SECONDS
    wake_seconds: float = DEFAULT_WAKE_SECONDS
    bucket_folder: Path | None = None
    uses_private_mounts: bool = True
    allows_open_ports: bool = False
    until_stdin_closes: bool = False
    watches: bool = False
    uses_stand_ins: bool = True
    substitutes: Mapping[str, Path] = field(default_factory=dict)
    engine: str | None = None
    images: Mapping[str, str] = field(default_factory=dict)
