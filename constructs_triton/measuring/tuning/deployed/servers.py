"""Candidates on endpoints in AWS: on one multi-model endpoint, in turn, or as variants of one endpoint."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from constructs_triton.errors import (
    ConstructsTritonError,
    InvalidValueError,
    InvocationError,
    ModelNotReadyError,
)
from constructs_triton.measuring.tuning.candidates import Candidate
from constructs_triton.measuring.tuning.deployed.place import AwsPlace
from constructs_triton.measuring.tuning.deployed.run_stack import (
    NAME_PREFIX,
    RunStack,
    StackFailedError,
    delete_archives,
)
from constructs_triton.measuring.tuning.deployed.run_template import Variant, make_template
from constructs_triton.measuring.tuning.racing import CandidateRefusedError, SearchStoppedError
from constructs_triton.measuring.tuning.repositories import TunedRepository
from constructs_triton.measuring.tuning.servers import CandidateServers, RunningCandidate
from constructs_triton.model_repository import ModelRepository, pack
from constructs_triton.operations.aws_reader import AwsReader, describe_failure
from constructs_triton_client import Invocation, Reply, SageMakerTransport

__all__ = ["DeployedServers", "TargetedTransport"]

# SageMaker answers after a minute that a model is still loading, and continues to load it.
_LOAD_ATTEMPTS = 15


class TargetedTransport(SageMakerTransport):
    """Sends each request to one model, or to one variant, of an endpoint.

    Args:
        endpoint_name: Name of the endpoint.
        target: Parameters of InvokeEndpoint that each request gets, such as ``TargetModel``.
        **options: Those of ``SageMakerTransport``.
    """

    def __init__(self, endpoint_name: str, target: Mapping[str, str], **options: Any) -> None:
        super().__init__(endpoint_name, **options)
        self._target = dict(target)

    def invoke(self, invocation: Invocation) -> Reply:
        """Call InvokeEndpoint with the target."""
        return super().invoke(replace(invocation, options={**invocation.options, **self._target}))


class DeployedServers(CandidateServers):
    """The candidates of a search in AWS. At most one stack exists at a time.

    Args:
        repository: The repository whose copies are packed.
        folder: Folder of the copies.
        requests: Requests that warm a candidate up.
        place: The instances.
        reader: Calls AWS.
        expires: When every endpoint of the search is deleted.
        calls: Models that Python models call.
        report: Called with what takes minutes.
        find_url: Returns the address of the runtime API for an endpoint. Default: AWS's.
    """

    def __init__(
        self,
        repository: TunedRepository,
        folder: Path,
        requests: Sequence[Invocation],
        *,
        place: AwsPlace,
        reader: AwsReader,
        expires: datetime,
        calls: Mapping[str, Sequence[str]] | None,
        report: Callable[[str], None],
        find_url: Callable[[str], str | None],
    ) -> None:
        super().__init__(repository, folder, requests, {}, calls)
        self._place = place
        self._reader = reader
        self._expires = expires
        self._report = report
        self._find_url = find_url
        self._run = f"{NAME_PREFIX}{secrets.token_hex(4)}"
        self._kept: RunStack | None = None
        self._runs_variants = False
        self.failure = ""

    @property
    def endpoint_name(self) -> str:
        """Name of the endpoint that exists now; empty if there is none."""
        return self._kept.name if self._kept else ""

    def get(self, candidate: Candidate, *, keep: Sequence[Candidate] = ()) -> RunningCandidate:
        """Return a candidate; those of ``keep`` become variants of one endpoint.

        Raises:
            CandidateRefusedError: the candidate is the reason that its endpoint or its first request failed.
            SearchStoppedError: an endpoint cannot be created for another reason, or AWS cannot be reached.
        """
        try:
            if keep and not self._runs_variants:
                with self._waiting():
                    self._open_variants(keep)
            if candidate not in self._running:
                self._start_one(candidate)
        except CandidateRefusedError as error:
            # Without a status, the request did not reach the endpoint.
            if getattr(error.__context__, "status", 0) is not None:
                raise
            raise SearchStoppedError(str(error)) from None
        except (StackFailedError, InvalidValueError) as error:
            raise SearchStoppedError(str(error)) from None
        return self._running[candidate]

    def close(self) -> None:
        """Delete the stack and all archives; ``failure`` says what could not be deleted."""
        place, until = self._place, f"until {self._expires:%H:%M} UTC"
        if place.keeps_endpoint and self._running:
            self._report(
                f"keeps the endpoint {self.endpoint_name} {until}, at {place.usd_per_hour:g} USD per hour"
            )
            return
        try:
            self._delete_stack()
            if self.starts:
                delete_archives(self._reader, place.bucket, f"{self._run}/")
        except ConstructsTritonError as error:
            self.failure = (
                f"{error}; an endpoint may cost money {until}, run `constructs-triton tune --clean`"
            )

    # --- endpoints ----------------------------------------------------------------------------------------

    def _open_variants(self, candidates: Sequence[Candidate]) -> None:
        self._delete_stack()
        urls = [self._upload(each) for each in candidates]
        names = [f"candidate-{number}" for number in range(len(urls))]
        model = self._repository.model
        self._open([Variant(name, url, model) for name, url in zip(names, urls, strict=True)])
        self._runs_variants = True
        for name, candidate in zip(names, candidates, strict=True):
            self._running[candidate] = self._connect({"TargetVariant": name})
            self._warm_up(candidate, self._running[candidate])

    def _start_one(self, candidate: Candidate) -> None:
        target = self._deploy_one(candidate)
        running = self._running[candidate] = self._connect(target)
        try:
            self._load(running)
            self._warm_up(candidate, running)
        except CandidateRefusedError:
            del self._running[candidate]
            raise

    def _deploy_one(self, candidate: Candidate) -> dict[str, str]:
        url = self._upload(candidate)
        if not self._place.is_multi_model:
            self._delete_stack()
            self._open_single(url)
            return {}
        if self._kept is None:
            with self._waiting():
                self._open([Variant("candidates", f"s3://{self._place.bucket}/{self._run}/")])
        return {"TargetModel": url.rpartition("/")[2]}

    def _open_single(self, url: str) -> None:
        try:
            self._open([Variant("candidate", url, self._repository.model)])
        except StackFailedError as error:
            if error.is_of_account:
                raise
            raise CandidateRefusedError(str(error)) from None

    def _open(self, variants: Sequence[Variant]) -> None:
        name = f"{self._run}-{self.starts}"
        # Known before it is created, so that it is deleted whatever happens meanwhile.
        self._kept = RunStack(self._reader, name, self._report)
        body = make_template(name, self._place, variants, self._expires)
        try:
            self._kept.create(body, self._expires, f"s3://{self._place.bucket}/{self._run}/")
        except StackFailedError:
            self._delete_stack()
            raise

    def _delete_stack(self) -> None:
        stack, self._kept = self._kept, None
        self._running.clear()
        if stack is not None:
            stack.delete()

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
        from botocore.exceptions import ClientError

        folder = self._folder / f"{self.starts}"
        shutil.rmtree(folder, ignore_errors=True)
        self.starts += 1
        try:
            self._repository.copy(candidate, folder / "models")
            repository = ModelRepository.from_directory(folder / "models", calls=self._calls)
            archive = pack(repository, repository.closure(self._repository.model), folder, use_cache=False)
            key = f"{self._run}/{archive.path.name}"
            self._reader.client("s3").upload_file(str(archive.path), self._place.bucket, key)
        except ClientError as error:
            raise StackFailedError(describe_failure("s3", error)) from None
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return f"s3://{self._place.bucket}/{key}"

    def _connect(self, target: Mapping[str, str]) -> RunningCandidate:
        name = self.endpoint_name
        options = {"endpoint_url": self._find_url(name), "region_name": self._place.region}
        return RunningCandidate(None, TargetedTransport(name, target, **options))

    def _load(self, running: RunningCandidate) -> None:
        """Send a request until the model is loaded."""
        for attempt in range(_LOAD_ATTEMPTS):
            try:
                running.transport.invoke(self._requests[0])
            except ModelNotReadyError as error:
                if attempt + 1 == _LOAD_ATTEMPTS:
                    raise CandidateRefusedError(str(error)) from None
            except InvocationError as error:
                raise CandidateRefusedError(" ".join(str(error).split())) from None
            else:
                return
