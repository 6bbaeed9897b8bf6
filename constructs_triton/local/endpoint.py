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
from typing import IO, Any, Protocol, Self

from constructs_triton.errors import LocalEndpointError

__all__ = ["LocalEndpoint", "SynthesizableApp"]

_STOP_TIMEOUT_SECONDS = 30.0


class _CloudAssembly(Protocol):
    @property
    def directory(self) -> str: ...


class SynthesizableApp(Protocol):
    """A ``cdk.App`` or a ``cdk.Stage``."""

    def synth(self) -> _CloudAssembly:
        """Write the cloud assembly."""
        ...


class LocalEndpoint:
    """Runs endpoints on this machine inside a ``with`` block.

    >>> with LocalEndpoint.from_assembly("cdk.out") as local:  # doctest: +SKIP
    ...     runtime = boto3.client("sagemaker-runtime", endpoint_url=local.endpoint_url)
    ...     runtime.invoke_endpoint(EndpointName=local.endpoint_names[0], Body=b"...")

    The gateway and its servers are separate processes. They end with the block, even if this process is
    killed.

    Args:
        arguments: Arguments of ``constructs-triton local up``; the class methods write them.

    Raises:
        LocalEndpointError: on entering the block, an endpoint cannot start. The message contains the reason.
    """

    def __init__(self, arguments: list[str]) -> None:
        self._arguments = arguments
        #: The gateway's process inside the block.
        self.process: subprocess.Popen[str] | None = None
        self._ready: dict[str, Any] = {}
        # A file, because the gateway would block on a pipe that is full.
        self._messages: IO[bytes] | None = None

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
        wake_delay_seconds: float | None = None,
        bucket_folder: str | Path | None = None,
        uses_private_mounts: bool = True,
        allow_open_ports: bool = False,
        uses_stand_ins: bool = True,
        substitutes: Mapping[str, str | Path] | None = None,
        engine: str | None = None,
        images: Mapping[str, str] | None = None,
    ) -> Self:
        """Run the endpoints of a cloud assembly, the folder that ``cdk synth`` writes.

        Args:
            path: the folder, usually ``cdk.out``.
            stack: only the endpoints of this stack (default: all).
            endpoint: only this endpoint (default: all).
            port: the port on 127.0.0.1 (default: 0, any free port).
            python: the Python that runs the models (default: the running one).
            tritonserver: the server (default: the one of nvidia-pytriton).
            memory_limit_mib: the memory of each multi-model endpoint in MiB, above which the least recently
                used model is unloaded (default: 70 percent of the free memory, shared equally).
            startup_timeout_seconds: how long a server may take to start (default: the template's, else 120).
            invocation_timeout_seconds: how long a container may take to answer (default: 60).
            wake_delay_seconds: how long an inference component whose scaling starts at zero copies answers
                that it has no capacity, from its first call on (default: 5; in AWS it takes minutes).
            bucket_folder: a folder in place of S3, for asynchronous endpoints.
            uses_private_mounts: whether each server sees its models at ``/opt/ml``, if the platform allows.
            uses_stand_ins: whether the frameworks' own packages run models whose backend the server does not
                have (default: True).
            substitutes: ONNX files, or folders with a Python ``model.py``, that run in the place of models,
                by the name of the model.
            engine: ``"docker"`` or ``"podman"`` to run the template's images in containers (default: the
                Triton server of nvidia-pytriton).
            images: with ``engine``, images to use instead, by endpoint, ``endpoint/variant``,
                ``endpoint/component`` or image.
            allow_open_ports: whether servers may listen on all network interfaces, if the platform has no
                private addresses.
        """
        options = {
            "--stack": stack,
            "--endpoint": endpoint,
            "--wake-delay": wake_delay_seconds,
            "--bucket-folder": bucket_folder,
            "--port": port,
            "--engine": engine,
            "--python": python,
            "--tritonserver": tritonserver,
            "--memory-limit": memory_limit_mib,
            "--startup-timeout": startup_timeout_seconds,
            "--invocation-timeout": invocation_timeout_seconds,
        }
        flags = {
            "--no-private-mounts": not uses_private_mounts,
            "--allow-open-ports": allow_open_ports,
            "--no-stand-ins": not uses_stand_ins,
        }
        return cls._of([str(path)], options, flags, substitutes, images)

    @classmethod
    def from_app(cls, app: SynthesizableApp, **options: Any) -> Self:
        """Synthesize a ``cdk.App`` or ``cdk.Stage`` and run its endpoints.

        ``options`` are those of :meth:`from_assembly`.

        Args:
            app: The app or stage, with all of its stacks.
            **options: Those of :meth:`from_assembly`.
        """
        return cls.from_assembly(app.synth().directory, **options)

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
        uses_stand_ins: bool = True,
        substitutes: Mapping[str, str | Path] | None = None,
        engine: str | None = None,
        images: Mapping[str, str] | None = None,
    ) -> Self:
        """Run one endpoint of a model repository or a ``.tar.gz`` archive.

        Args:
            path: the repository or the archive.
            model: the model to serve, if there are several.
            is_multi_model: whether to serve all models; callers choose one with ``TargetModel``.
            endpoint: the endpoint's name (default: the name of the folder or file).
            port: the port on 127.0.0.1 (default: 0, any free port).
            python: the Python that runs the models (default: the running one).
            memory_limit_mib: the memory of a multi-model endpoint in MiB, above which the least recently used
                model is unloaded (default: 70 percent of the free memory).
            uses_stand_ins: whether the frameworks' own packages run models whose backend the server does not
                have (default: True).
            substitutes: ONNX files, or folders with a Python ``model.py``, that run in the place of models,
                by the name of the model.
            engine: ``"docker"`` or ``"podman"`` to run the template's images in containers (default: the
                Triton server of nvidia-pytriton).
            images: with ``engine``, images to use instead, by endpoint, ``endpoint/variant`` or image.
            allow_open_ports: whether servers may listen on all network interfaces, if the platform has no
                private addresses.
        """
        options = {
            "--model": model,
            "--endpoint": endpoint,
            "--port": port,
            "--engine": engine,
            "--python": python,
            "--memory-limit": memory_limit_mib,
        }
        flags = {
            "--multi-model": is_multi_model,
            "--allow-open-ports": allow_open_ports,
            "--no-stand-ins": not uses_stand_ins,
        }
        return cls._of([str(path)], options, flags, substitutes, images)

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
        wake_delay_seconds: float | None = None,
        allow_open_ports: bool = False,
        uses_stand_ins: bool = True,
        substitutes: Mapping[str, str | Path] | None = None,
        engine: str | None = None,
        images: Mapping[str, str] | None = None,
    ) -> Self:
        """Run the endpoints that are deployed at an AWS API, for example one on loopback in tests.

        Their definitions come from SageMaker and their archives from S3, with the credentials and the Region
        of the environment. The options are those of :meth:`from_assembly`.

        Args:
            aws_endpoint_url: Address of the AWS API.
        """
        options = {
            "--aws-endpoint-url": aws_endpoint_url,
            "--wake-delay": wake_delay_seconds,
            "--endpoint": endpoint,
            "--port": port,
            "--engine": engine,
            "--python": python,
            "--tritonserver": tritonserver,
            "--memory-limit": memory_limit_mib,
            "--startup-timeout": startup_timeout_seconds,
            "--invocation-timeout": invocation_timeout_seconds,
        }
        flags = {"--allow-open-ports": allow_open_ports, "--no-stand-ins": not uses_stand_ins}
        return cls._of([], options, flags, substitutes, images)

    @classmethod
    def _of(
        cls,
        source: Sequence[str],
        options: Mapping[str, object],
        flags: Mapping[str, bool],
        substitutes: Mapping[str, str | Path] | None,
        images: Mapping[str, str] | None,
    ) -> Self:
        words = [*source, *(name for name, is_set in flags.items() if is_set)]
        words += [f"--substitute={name}={path}" for name, path in (substitutes or {}).items()]
        words += [f"--image={name}={image}" for name, image in (images or {}).items()]
        given = [f"{name}={value}" for name, value in options.items() if value is not None]
        return cls(["local", "up", *words, "--json", "--until-stdin-closes", *given])

    def _command(self) -> list[str]:
        program = "from constructs_triton.cli import main; raise SystemExit(main())"
        return [sys.executable, "-c", program, *self._arguments]

    def __enter__(self) -> Self:
        self._messages = tempfile.TemporaryFile()
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
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> str:
        """End the gateway and return its messages."""
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
        assert self._messages is not None
        self._messages.close()
        return messages

    @property
    def endpoint_url(self) -> str:
        """The ``endpoint_url`` for boto3's ``sagemaker-runtime`` client."""
        return str(self._ready["url"])

    @property
    def endpoint_names(self) -> tuple[str, ...]:
        """The names of the endpoints, for ``EndpointName``."""
        return tuple(endpoint["name"] for endpoint in self._ready["endpoints"])

    @property
    def inference_component_names(self) -> tuple[str, ...]:
        """The names of the inference components of all endpoints, for ``InferenceComponentName``."""
        return tuple(name for each in self._ready["endpoints"] for name in each["inference_components"])

    @property
    def description(self) -> dict[str, Any]:
        """The output of ``local up --json``: endpoints, variants, process IDs, logs."""
        return self._ready

    @property
    def messages(self) -> str:
        """The messages of the run so far: containers' messages, changed models, restarts."""
        assert self._messages is not None
        # No seek: the gateway writes to the same open file at the same position.
        descriptor = self._messages.fileno()
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode("utf-8", "replace").strip()
