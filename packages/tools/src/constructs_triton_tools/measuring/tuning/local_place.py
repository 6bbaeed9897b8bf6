"""This machine as the place of a search: its hardware, its Triton server, and candidates that run on it."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from constructs_triton_client import Invocation, SageMakerTransport
from constructs_triton_core.errors import InvalidValueError, LocalEndpointError
from constructs_triton_core.processes.children import run_child
from constructs_triton_tools.local import LocalEndpoint
from constructs_triton_tools.local.options import LocalRunOptions
from constructs_triton_tools.local.server.installation import find_installation
from constructs_triton_tools.measuring.tuning.candidates import Candidate
from constructs_triton_tools.measuring.tuning.listener import TuneListener
from constructs_triton_tools.measuring.tuning.preparation import Machine, TuneOptions
from constructs_triton_tools.measuring.tuning.racing import CandidateRefusedError
from constructs_triton_tools.measuring.tuning.repositories import TunedRepository
from constructs_triton_tools.measuring.tuning.servers import (
    CandidateServers,
    RunningCandidate,
    describe_refusal,
)
from triton_model_check.model_config.backends import infer_backend

__all__ = ["LocalPlace"]

_NAME = "tune"
_CPU_INFO = Path("/proc/cpuinfo")
_QUERY = ("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
_QUERY_SECONDS = 20


class LocalPlace:
    """This machine, or containers on it.

    Args:
        options: Options of ``LocalEndpoint``, such as ``engine`` and ``images``.
    """

    instance_type = "local"
    start_seconds = 3.0
    most_finalists = 3

    def __init__(self, options: LocalRunOptions) -> None:
        self.options = options
        self.machine = Machine(os.cpu_count() or 1, _cpu_name(), _gpu_names())

    def __str__(self) -> str:
        """Which Triton server runs the candidates: the image of an engine, or the bundled server."""
        options = self.options
        if options.get("engine"):
            images = ", ".join(sorted((options.get("images") or {}).values())) or "the default image"
            return f"{images} in {options['engine']}"
        if options.get("tritonserver"):
            return str(options["tritonserver"])
        try:
            return f"nvidia-pytriton {version('nvidia-pytriton')}"
        except PackageNotFoundError:
            return "nvidia-pytriton"

    def check(self, repository: TunedRepository, options: TuneOptions) -> str:
        """Return a sentence about the backends that a stand-in replaces; empty if there is none.

        Raises:
            InvalidValueError: there is one, and it was not accepted.
        """
        if self.options.get("engine"):
            return ""
        server = self.options.get("tritonserver")
        installed = find_installation(Path(server) if server else None).backend_names()
        backends = {infer_backend(folder).backend for folder in repository.folders}
        names = ", ".join(sorted(backends - installed - {""}))
        if names and not options.accept_stand_in:
            raise InvalidValueError(
                f"{repository.model}: this server does not have the backend {names}. The best settings of a "
                "stand-in are not those of the backend; add --engine and --image, or --accept-stand-in to "
                "search with the stand-in"
            )
        return f"Figures of a Python stand-in, not of the backend {names}." if names else ""

    def open(
        self,
        repository: TunedRepository,
        requests: Sequence[Invocation],
        options: TuneOptions,
        listener: TuneListener,
    ) -> CandidateServers:
        """Return what starts candidates here; nothing is started yet."""
        return _LocalServers(repository, requests, options, listener, self)


@dataclass
class _LocalServers(CandidateServers):
    place: LocalPlace
    _stack: ExitStack = field(default_factory=ExitStack, init=False)

    def keep(self, candidates: Sequence[Candidate]) -> None:
        """Let candidates run at the same time, unless they would share the memory of GPUs."""
        self._kept = () if self.place.machine.gpus else candidates

    def close(self) -> None:
        """Stop all candidates, and delete their copies."""
        self._running.clear()
        self._stack.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, candidate: Candidate) -> None:
        if not self._running.keys() <= set(self._kept):
            self.close()
        options: LocalRunOptions = {**self.place.options, "endpoint": _NAME, "is_exact": True}
        endpoint = LocalEndpoint.from_repository(
            self._copy(candidate), model=self.repository.model, calls=self.repository.calls, **options
        )
        try:
            self._stack.enter_context(endpoint)
        except LocalEndpointError as error:
            raise CandidateRefusedError(describe_refusal(error)) from None
        transport = SageMakerTransport(_NAME, endpoint_url=endpoint.endpoint_url)
        self._add(candidate, RunningCandidate(transport, self.requests, endpoint))


# --- the machine ---------------------------------------------------------------------------------------


def _cpu_name() -> str:
    with suppress(OSError):
        for line in _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()  # platform.processor() would start `uname`


def _gpu_names() -> tuple[str, ...]:
    if shutil.which(_QUERY[0]) is None:
        return ()
    try:
        answer = run_child(_QUERY, seconds=_QUERY_SECONDS)
    except OSError:
        return ()
    lines = answer.stdout.splitlines() if answer.returncode == 0 else []
    return tuple(line.strip() for line in lines if line.strip())
