"""A local run as a context manager, for tests and notebooks."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self, Unpack

from constructs_triton_core.declared_values import takes
from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_core.processes.children import PIPE, Child, own_environment, python_command
from constructs_triton_tools.local.gateway_query import ask_gateway
from constructs_triton_tools.local.model_statistics import (
    ModelStatistics,
    parse_statistics,
    statistics_since,
)
from constructs_triton_tools.local.options import LocalRunOptions, command_line

__all__ = ["LocalEndpoint", "Statistics", "SynthesizableApp", "read_statistics"]

_STOP_TIMEOUT_SECONDS = 30.0
#: Statistics of models by endpoint, and by variant or inference component.
Statistics = dict[str, dict[str, tuple[ModelStatistics, ...]]]


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

    The gateway and its servers are separate processes. They end with the block, even if this
    process is killed.

    Args:
        arguments: Arguments of ``constructs-triton local up``; the class methods write them.

    Raises:
        LocalEndpointError: on entering the block, an endpoint cannot start. The message contains
            the reason.
    """

    def __init__(self, arguments: list[str]) -> None:
        self._arguments = arguments
        #: The gateway's process inside the block.
        self.process: Child[str] | None = None
        self._ready: dict[str, Any] = {}
        # A file, because the gateway would block on a pipe that is full.
        self._messages: IO[bytes] | None = None

    @classmethod
    @takes(LocalRunOptions)
    def from_assembly(
        cls, path: str | Path, *, stack: str | None = None, **options: Unpack[LocalRunOptions]
    ) -> Self:
        """Run the endpoints of a cloud assembly, the folder that ``cdk synth`` writes.

        Args:
            path: The folder, usually ``cdk.out``.
            stack: Run only the endpoints of this stack. Default: all.
        """
        return cls._of([str(path), *_given("--stack", stack)], options)

    @classmethod
    def from_app(
        cls, app: SynthesizableApp, *, stack: str | None = None, **options: Unpack[LocalRunOptions]
    ) -> Self:
        """Synthesize a ``cdk.App`` or ``cdk.Stage`` and run its endpoints.

        Args:
            app: The app or stage, with all of its stacks.
            stack: Run only the endpoints of this stack. Default: all.
            **options: Those of :meth:`from_assembly`.
        """
        return cls.from_assembly(app.synth().directory, stack=stack, **options)

    @classmethod
    @takes(LocalRunOptions)
    def from_repository(
        cls,
        path: str | Path,
        *,
        model: str | None = None,
        is_multi_model: bool = False,
        calls: Mapping[str, Sequence[str]] | None = None,
        **options: Unpack[LocalRunOptions],
    ) -> Self:
        """Run one endpoint of a model repository or a ``.tar.gz`` archive.

        Args:
            path: The repository or the archive.
            model: The model to serve, if there are several.
            is_multi_model: Whether to serve all models; callers choose one with ``TargetModel``.
            calls: Models that a Python model calls and whose names its source does not contain as
                strings, by the caller: ``{"pipeline": ["scale"]}``.
        """
        flags = ["--multi-model"] if is_multi_model else []
        flags += [
            f"--called-models={caller}={','.join(models)}"
            for caller, models in (calls or {}).items()
        ]
        return cls._of([str(path), *_given("--model", model), *flags], options)

    @classmethod
    @takes(LocalRunOptions)
    def from_aws(cls, aws_endpoint_url: str, **options: Unpack[LocalRunOptions]) -> Self:
        """Run the endpoints that are deployed at an AWS API, for example one on loopback in tests.

        Their definitions come from SageMaker and their archives from S3, with the credentials and
        the Region of the environment.

        Args:
            aws_endpoint_url: Address of the AWS API.
        """
        return cls._of(_given("--aws-endpoint-url", aws_endpoint_url), options)

    @classmethod
    def _of(cls, source: Sequence[str], options: LocalRunOptions) -> Self:
        given = command_line({"port": 0, **options})
        return cls(["local", "up", *source, "--json", "--until-stdin-closes", *given])

    def _command(self) -> list[str]:
        program = "from constructs_triton.cli import main; raise SystemExit(main())"
        return python_command(program, *self._arguments)

    def __enter__(self) -> Self:
        self._messages = tempfile.TemporaryFile()
        self.process = Child(
            self._command(),
            environment=own_environment(),
            stdin=PIPE,
            stdout=PIPE,
            stderr=self._messages,
            text=True,
        )
        assert self.process.stdout is not None
        ready = json.loads(self.process.stdout.readline() or "{}")
        if "url" not in ready:
            messages = self._stop()
            raise LocalEndpointError(str(ready.get("error", messages)))
        self._ready = ready
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
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
        except TimeoutError:
            process.end()
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
        """The names of the inference components of all endpoints,
        for ``InferenceComponentName``.
        """
        names: list[str] = []
        for endpoint in self._ready["endpoints"]:
            names += endpoint["inference_components"]
        return tuple(names)

    @property
    def description(self) -> dict[str, Any]:
        """The output of ``local up --json``: endpoints, variants, process IDs, logs."""
        return self._ready

    def statistics(self, *, since: Statistics | None = None) -> Statistics:
        """Return what the servers have counted of each model: requests, batches, time in queue and
        compute.

        The keys are the endpoint, and the variant or inference component. Each step of an ensemble
        and each model that another one calls has an entry.

        Args:
            since: An earlier result. Default: the counters begin when a model is loaded.

        Raises:
            LocalEndpointError: a server does not answer, or its statistics cannot be reached.
        """
        return read_statistics(self.endpoint_url, since=since)

    @property
    def messages(self) -> str:
        """The messages of the run so far: containers' messages, changed models, restarts."""
        assert self._messages is not None
        # No seek: the gateway writes to the same open file at the same position.
        descriptor = self._messages.fileno()
        return (
            os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode("utf-8", "replace").strip()
        )


def read_statistics(url: str, *, since: Statistics | None = None) -> Statistics:
    """Return what the servers of the local run at ``url`` have counted,
    as ``LocalEndpoint.statistics``.
    """
    earlier = since or {}
    found: dict[str, dict[str, tuple[ModelStatistics, ...]]] = {}
    for endpoint, servers in ask_gateway(url, "/statistics").items():
        before = earlier.get(endpoint, {})
        found[endpoint] = {
            name: statistics_since(_statistics(answer), before.get(name, ()))
            for name, answer in servers.items()
        }
    return found


def _statistics(answer: Mapping[str, Any]) -> tuple[ModelStatistics, ...]:
    if "error" in answer:
        raise LocalEndpointError(answer["error"])
    return parse_statistics(answer["model_stats"])


def _given(flag: str, value: str | None) -> list[str]:
    return [] if value is None else [f"{flag}={value}"]
