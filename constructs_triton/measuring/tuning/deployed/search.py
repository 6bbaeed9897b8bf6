"""A search on instances in AWS."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from constructs_triton.measuring.tuning.candidates import Candidate
from constructs_triton.measuring.tuning.deployed.place import START_MINUTES, AwsPlace, Quota, read_quota
from constructs_triton.measuring.tuning.deployed.run_stack import StackFailedError
from constructs_triton.measuring.tuning.deployed.servers import DeployedServers
from constructs_triton.measuring.tuning.listener import TuneListener
from constructs_triton.measuring.tuning.local_search import Tuning
from constructs_triton.measuring.tuning.outcome import TuneResult
from constructs_triton.measuring.tuning.preparation import Inputs, Machine, TuneOptions
from constructs_triton.measuring.tuning.racing import Race
from constructs_triton.measuring.tuning.report import Facts
from constructs_triton.operations.aws_reader import AwsReader
from constructs_triton_client import Invocation

__all__ = ["DeployedTuning"]


class DeployedTuning(Tuning):
    """A search on instances of SageMaker. Nothing is created before ``run``.

    Args:
        repository: The model repository.
        model: The model to serve. Default: the only top-level model.
        options: How the search is run.
        place: The instances.
        reader: Calls AWS.
        requests: Inputs or encoded requests. Default: random values.
        find_url: Returns the address of the runtime API for an endpoint. Default: AWS's.

    Raises:
        InvalidValueError: an argument is out of range, the model cannot be tuned, the quota is too small, or
            the search may cost more than its budget.
    """

    def __init__(
        self,
        repository: Path,
        model: str | None,
        options: TuneOptions,
        *,
        place: AwsPlace,
        reader: AwsReader,
        requests: Sequence[Inputs | Invocation] | None = None,
        find_url: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self.place = place
        self._reader = reader
        self._find_url = find_url
        self._servers: DeployedServers | None = None
        super().__init__(repository, model, options, requests)
        place.check_budget(options.budget_minutes)
        self.quota: Quota = read_quota(reader, place.instance_type)
        self.quota.check(place)

    @property
    def server(self) -> str:
        """The image and the instances."""
        return str(self.place)

    @property
    def start_seconds(self) -> float:
        """What the start of a candidate takes."""
        return 10.0 if self.place.is_multi_model else 60.0 * START_MINUTES / 3

    def run(self, listener: TuneListener | None = None) -> TuneResult:
        """Search, compare, write the results, and delete the endpoint, also after Ctrl-C and SIGTERM.

        Raises:
            InvalidValueError: the folder of the results belongs to a search with other inputs.
            StackFailedError: the results are written, but the endpoint could not be deleted.
        """
        with _terminations():
            result = super().run(listener)
        if self._servers is not None and self._servers.failure:
            raise StackFailedError(self._servers.failure)
        return result

    @property
    def facts(self) -> Facts:
        """What the search is measured with."""
        return replace(super().facts, shares_cpus=False, instance_type=self.place.instance_type)

    def _inspect(self) -> Machine:
        hardware = self.place.hardware
        gpus = (hardware.gpu_model or "GPU",) * (hardware.gpus or 0)
        return Machine(hardware.vcpus or 1, hardware.name, gpus)

    def _find_stand_in(self) -> str:
        return ""

    def _make_servers(self, folder: Path, watcher: TuneListener) -> DeployedServers:
        self._servers = DeployedServers(
            self.repository,
            folder,
            self.requests,
            place=self.place,
            reader=self._reader,
            expires=self.place.expires(self.options.budget_minutes),
            calls=self.options.calls,
            report=watcher.on_wait,
            find_url=self._find_url,
        )
        return self._servers

    def _finalists(self, race: Race) -> list[Candidate]:
        return list(dict.fromkeys([race.present, race.best]))

    def _keep(self, finalists: Sequence[Candidate]) -> Sequence[Candidate]:
        """Both run as variants of one endpoint, unless the quota allows only one instance."""
        return finalists if self.quota.fits_comparison else ()


@contextmanager
def _terminations() -> Iterator[None]:
    """Handle SIGTERM inside the block as Ctrl-C, so that the endpoint is deleted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(*_: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
