"""Candidates on endpoints in AWS: on one multi-model endpoint, in turn, or as variants of one endpoint."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from secrets import token_hex

from constructs_triton_client import SageMakerTransport
from constructs_triton_core.errors import ConstructsTritonError, InvocationError, ModelNotReadyError
from constructs_triton_tools.measuring.tuning.candidates import Candidate
from constructs_triton_tools.measuring.tuning.deployed.instances import AwsInstances
from constructs_triton_tools.measuring.tuning.deployed.run_stack import (
    NAME_PREFIX,
    StackFailedError,
    create_stack,
    delete_archives,
    delete_stack,
)
from constructs_triton_tools.measuring.tuning.deployed.run_template import make_template
from constructs_triton_tools.measuring.tuning.racing import CandidateRefusedError, SearchStoppedError
from constructs_triton_tools.measuring.tuning.servers import CandidateServers, RunningCandidate
from triton_model_check.model_repository import ModelRepository, pack

__all__ = ["DeployedServers"]

# SageMaker answers after a minute that a model is still loading, and continues to load it.
_LOAD_ATTEMPTS = 15


@dataclass
class DeployedServers(CandidateServers):
    """The candidates of a search in AWS. At most one stack exists at a time.

    Args:
        place: The instances.
        expires: When every endpoint of the search is deleted.
    """

    place: AwsInstances
    expires: datetime = field(init=False)
    _run: str = field(default_factory=lambda: f"{NAME_PREFIX}{token_hex(4)}", init=False)
    #: The stack and the endpoint that exist now.
    _name: str = field(default="", init=False)
    _has_archives: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        minutes = self.place.minutes_to_live(self.options.budget_minutes)
        self.expires = datetime.now(UTC) + timedelta(minutes=minutes)

    def keep(self, candidates: Sequence[Candidate]) -> None:
        """Let candidates be the variants of one endpoint, unless the quota allows only one instance."""
        if self.place.runs_variants:
            self._kept = candidates
            self._running.clear()  # they run elsewhere: the next start opens the endpoint

    def close(self) -> None:
        """Delete the stack and all archives.

        Raises:
            StackFailedError: something was not deleted.
        """
        until = f"until {self.expires:%H:%M} UTC"
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.place.keeps_endpoint and self._running:
            price = f"at {self.place.usd_per_hour:g} USD per hour"
            self.listener.on_wait(f"keeps the endpoint {self._name} {until}, {price}")
            return
        try:
            self._delete_stack()
            if self._has_archives:
                delete_archives(self.place.reader, self.place.bucket, f"{self._run}/")
        except ConstructsTritonError as error:
            raise StackFailedError(
                f"{error}; an endpoint may cost money {until}, run `constructs-triton tune --clean`"
            ) from None

    # --- endpoints ----------------------------------------------------------------------------------------

    def _start(self, candidate: Candidate) -> None:
        if candidate in self._kept:
            self._start_variants()
        elif self.place.is_multi_model:
            url = self._upload(candidate)
            if not self._name:
                with self._waiting():
                    self._create_stack({"candidates": f"s3://{self.place.bucket}/{self._run}/"})
            self._connect(candidate, TargetModel=url.rpartition("/")[2])
        else:
            self._delete_stack()
            self._start_alone(candidate)

    def _start_variants(self) -> None:
        with self._waiting():
            self._delete_stack()
            urls = {f"candidate-{number}": self._upload(each) for number, each in enumerate(self._kept)}
            self._create_stack(urls, self.repository.model)
            for candidate, name in zip(self._kept, urls, strict=True):
                self._connect(candidate, TargetVariant=name)

    def _start_alone(self, candidate: Candidate) -> None:
        try:
            self._create_stack({"candidate": self._upload(candidate)}, self.repository.model)
        except StackFailedError as error:
            if error.is_of_account:
                raise
            raise CandidateRefusedError(str(error)) from None
        self._connect(candidate)

    def _create_stack(self, data_urls: Mapping[str, str], model: str = "") -> None:
        place = self.place
        # Known before it is created, so that it is deleted whatever happens meanwhile.
        self._name = f"{self._run}-{self.starts}"
        self.listener.on_wait(f"creates the endpoint {self._name}, which takes minutes")
        template = make_template(self._name, place, data_urls, model, self.expires)
        try:
            create_stack(place.reader, self._name, template, expires=self.expires, bucket=place.bucket)
        except StackFailedError:
            self._delete_stack()
            raise

    def _delete_stack(self) -> None:
        name, self._name = self._name, ""
        self._running.clear()
        if name:
            self.listener.on_wait(f"deletes the endpoint {name}")
            delete_stack(self.place.reader, name)

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Count the time inside the block as a wait, which is not part of the budget."""
        begin = time.monotonic()
        try:
            yield
        finally:
            self.waited_seconds += time.monotonic() - begin

    # --- candidates ---------------------------------------------------------------------------------------

    def _upload(self, candidate: Candidate) -> str:
        """Pack a candidate, upload it, and return its URL."""
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import BotoCoreError, ClientError

        copy = self._copy(candidate)
        repository = ModelRepository.from_directory(copy, calls=self.repository.calls)
        names = repository.closure(self.repository.model)
        archive = pack(repository, names, self.folder, use_cache=False)
        bucket, key = self.place.bucket, f"{self._run}/{archive.path.name}"
        had_archives, self._has_archives = self._has_archives, True
        try:
            self.place.reader.client("s3").upload_file(str(archive.path), bucket, key)
        except (Boto3Error, BotoCoreError, ClientError) as error:
            self._has_archives = had_archives
            raise StackFailedError(f"s3://{bucket}: an archive was not uploaded: {error}") from None
        finally:
            archive.path.unlink(missing_ok=True)
            shutil.rmtree(copy, ignore_errors=True)
        return f"s3://{bucket}/{key}"

    def _connect(self, candidate: Candidate, **target: str) -> None:
        """Send the requests of a candidate to its model, or to its variant, of the endpoint."""
        transport = SageMakerTransport(self._name, session=self.place.reader.session)
        requests = [replace(each, options={**each.options, **target}) for each in self.requests]
        self._add(candidate, RunningCandidate(transport, requests))

    def _warm_up(self, candidate: Candidate, running: RunningCandidate) -> None:
        for _ in range(_LOAD_ATTEMPTS):
            with suppress(ModelNotReadyError):
                running.transport.invoke(running.requests[0])
                break
        super()._warm_up(candidate, running)

    def _explain(self, error: InvocationError) -> ConstructsTritonError:
        """Return what a first request that failed means; without a status, it did not reach the endpoint."""
        return SearchStoppedError(str(error)) if error.status is None else super()._explain(error)
