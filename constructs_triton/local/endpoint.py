"""A local run as a context manager, for tests and notebooks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from constructs_triton.errors import LocalEndpointError

__all__ = ["LocalEndpoint"]

_STOP_TIMEOUT_SECONDS = 30.0


class LocalEndpoint:
    """Runs the endpoints of a cloud assembly while the ``with`` block lasts.

    >>> with LocalEndpoint.from_assembly("cdk.out") as local:  # doctest: +SKIP
    ...     runtime = boto3.client("sagemaker-runtime", endpoint_url=local.endpoint_url)
    ...     runtime.invoke_endpoint(EndpointName=local.endpoint_names[0], Body=b"...")

    The gateway and its servers are processes of their own, and end even if this one is killed. Entering
    raises ``LocalEndpointError`` with what was said where something cannot start.
    """

    def __init__(self, arguments: list[str]) -> None:
        self._arguments = arguments
        #: The gateway's process while the block lasts.
        self.process: subprocess.Popen[str] | None = None
        self._ready: dict[str, Any] = {}
        # A file, not a pipe: a pipe that nobody reads would in the end stop the gateway.
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115 - closed on exit

    @classmethod
    def from_assembly(
        cls,
        path: str | Path,
        *,
        stack: str | None = None,
        endpoint: str | None = None,
        port: int = 0,
        python: str | Path | None = None,
        tritonserver: str | Path | None = None,
        memory_limit_mib: int | None = None,
        startup_timeout_seconds: float | None = None,
        invocation_timeout_seconds: float | None = None,
        bucket_folder: str | Path | None = None,
        uses_private_mounts: bool = True,
        allow_open_ports: bool = False,
    ) -> Self:
        """The endpoints of the folder that ``cdk synth`` wrote; the options are those of ``local up``."""
        options = {
            "--stack": stack,
            "--endpoint": endpoint,
            "--bucket-folder": bucket_folder,
            "--port": port,
            "--python": python,
            "--tritonserver": tritonserver,
            "--memory-limit": memory_limit_mib,
            "--startup-timeout": startup_timeout_seconds,
            "--invocation-timeout": invocation_timeout_seconds,
        }
        flags = {"--no-private-mounts": not uses_private_mounts, "--allow-open-ports": allow_open_ports}
        return cls._of([str(path)], options, flags)

    @classmethod
    def from_repository(
        cls,
        path: str | Path,
        *,
        model: str | None = None,
        is_multi_model: bool = False,
        endpoint: str | None = None,
        port: int = 0,
        python: str | Path | None = None,
        memory_limit_mib: int | None = None,
        allow_open_ports: bool = False,
    ) -> Self:
        """One endpoint of a model repository or an archive, as ``local up PATH`` runs it.

        It is called ``endpoint``, else like the folder. ``model`` is the one that is served where there are
        several; ``is_multi_model`` serves them all, by ``TargetModel``.
        """
        options = {
            "--model": model,
            "--endpoint": endpoint,
            "--port": port,
            "--python": python,
            "--memory-limit": memory_limit_mib,
        }
        flags = {"--multi-model": is_multi_model, "--allow-open-ports": allow_open_ports}
        return cls._of([str(path)], options, flags)

    @classmethod
    def from_aws(
        cls,
        aws_endpoint_url: str,
        *,
        endpoint: str | None = None,
        port: int = 0,
        python: str | Path | None = None,
        tritonserver: str | Path | None = None,
        memory_limit_mib: int | None = None,
        startup_timeout_seconds: float | None = None,
        invocation_timeout_seconds: float | None = None,
        allow_open_ports: bool = False,
    ) -> Self:
        """The endpoints deployed at an AWS endpoint, for instance one on loopback in tests.

        SageMaker is asked what they are and S3 for their archives, with the environment's credentials and
        Region; the options are those of ``local up``.
        """
        options = {
            "--aws-endpoint-url": aws_endpoint_url,
            "--endpoint": endpoint,
            "--port": port,
            "--python": python,
            "--tritonserver": tritonserver,
            "--memory-limit": memory_limit_mib,
            "--startup-timeout": startup_timeout_seconds,
            "--invocation-timeout": invocation_timeout_seconds,
        }
        return cls._of([], options, {"--allow-open-ports": allow_open_ports})

    @classmethod
    def _of(cls, source: Sequence[str], options: Mapping[str, object], flags: Mapping[str, bool]) -> Self:
        words = [*source, *(name for name, is_set in flags.items() if is_set)]
        given = [f"{name}={value}" for name, value in options.items() if value is not None]
        return cls(["local", "up", *words, "--json", "--until-stdin-closes", *given])

    def _command(self) -> list[str]:
        program = "from constructs_triton.cli import main; raise SystemExit(main())"
        return [sys.executable, "-c", program, *self._arguments]

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            self._command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            messages = self._stop()
            raise LocalEndpointError(messages.removeprefix("error: "))
        self._ready = json.loads(line)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> str:
        """End the gateway; returns what it said."""
        process = self.process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(_STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        messages = self.messages
        self._messages.close()
        return messages

    @property
    def endpoint_url(self) -> str:
        """What boto3's ``sagemaker-runtime`` client takes as ``endpoint_url``."""
        return str(self._ready["url"])

    @property
    def endpoint_names(self) -> tuple[str, ...]:
        """What callers give as ``EndpointName``."""
        return tuple(endpoint["name"] for endpoint in self._ready["endpoints"])

    @property
    def description(self) -> dict[str, Any]:
        """The line that ``local up --json`` prints: endpoints, variants, process ids, logs."""
        return self._ready

    @property
    def messages(self) -> str:
        """What the run has said so far: containers' messages, relaxed models, restarts."""
        # Not seek and read: the gateway writes through the same open file, at the same position.
        descriptor = self._messages.fileno()
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode("utf-8", "replace").strip()
