"""Builds a plan at most once: looks on this machine, then in the bucket, and then starts a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from constructs_triton_core.aws_reader import AwsError, reaching_aws
from constructs_triton_core.errors import InvalidValueError, InvocationError
from constructs_triton_core.untrusted.regular_files import read_json
from constructs_triton_tools.building.plans.job_bucket import JobBucket
from constructs_triton_tools.building.plans.job_failures import explain_failure
from constructs_triton_tools.building.plans.job_request import JobRequest
from constructs_triton_tools.building.plans.plan_files import (
    LOG_FILE,
    PLAN_FILE,
    BuiltPlan,
    PlanCache,
    describe_built_plan,
)
from constructs_triton_tools.building.plans.plan_job import JobLog, JobState, PlanJob
from triton_model_check.model_files.plan_manifest import MANIFEST_FILE, PlanManifest, read_manifest

if TYPE_CHECKING:
    import boto3

Origin = Literal["this machine", "the bucket", "a job"]


@dataclass(frozen=True, slots=True)
class CompiledPlan:
    """A plan, and where it comes from.

    ``origin`` is where it was found; ``"a job"`` has built it now. ``seconds`` is how long the
    instance of the job ran; ``None`` without a job, or if it is not known.
    """

    built: BuiltPlan
    origin: Origin
    seconds: float | None = None


class PlanCompiler:
    """Builds plans in one Region, and prints progress with ``show``."""

    def __init__(
        self, session: boto3.Session, cache: PlanCache, show: Callable[[str], None]
    ) -> None:
        self._session = session
        self._cache = cache
        self._show = show

    def find(self, request: JobRequest) -> CompiledPlan | None:
        """Return a plan that was built before, on this machine or in the bucket."""
        found = self._cache.find(request.build.key)
        if found is not None:
            return CompiledPlan(found, "this machine")
        with self._cache.draft() as draft, _explained(request):
            content = _content(draft)
            if not JobBucket(self._session, request.settings).download_kept(request, content):
                return None
            manifest = read_manifest(content / MANIFEST_FILE)
            _, size, digest = describe_built_plan(content / PLAN_FILE)
            if manifest is None or (manifest.key, manifest.plan_bytes, manifest.plan_sha256) != (
                request.build.key,
                size,
                digest,
            ):
                self._show(
                    f"{request.settings.url(request.plan_prefix)}: is damaged, and is built again"
                )
                return None
            return CompiledPlan(self._cache.keep(draft, manifest), "the bucket")

    def build(self, request: JobRequest) -> CompiledPlan:
        """Build a plan in a job. An interruption stops the job.

        Raises:
            InvocationError: the job cannot be started, or fails; the message has cause and fix.
        """
        bucket = JobBucket(self._session, request.settings)
        with _explained(request):
            started = self._find_running(bucket, request)
            if started is not None:
                request = started
                self._show(f"{request.name}: builds this plan already, waiting for it")
            job = PlanJob(self._session, request)
            log = JobLog(self._session, request, self._show)
            state = self._run(
                job, log, None if started else lambda: self._start(job, bucket, request)
            )
        if state.status != "Completed":
            raise InvocationError(_failure_text(request, state, log))
        with self._cache.draft() as draft, _explained(request):
            content = _content(draft)
            manifest = self._download(bucket, request, state, content)
            built = self._cache.keep(draft, manifest)
            with _keeping_for_others(self._show):
                bucket.keep(request, built.folder)
        return CompiledPlan(built, "a job", state.seconds)

    def _find_running(self, bucket: JobBucket, request: JobRequest) -> JobRequest | None:
        """Return a job that another run, or one that lost its connection,
        has started for the same plan.
        """
        started = bucket.find_started(request)
        if started is None:
            return None
        state = PlanJob(self._session, started).describe_if_known()
        return (
            started if state is not None and state.status in ("InProgress", "Completed") else None
        )

    def _start(self, job: PlanJob, bucket: JobBucket, request: JobRequest) -> None:
        self._show(f"uploading {request.build.model.path} to s3://{request.settings.bucket}")
        bucket.upload_inputs(request)
        job.start()
        bucket.note_started(request)

    def _run(self, job: PlanJob, log: JobLog, start: Callable[[], None] | None) -> JobState:
        try:
            if start is not None:
                start()
            return job.follow(log, self._show)
        except KeyboardInterrupt:
            self._show("stopping the job")
            _stop(job, self._show)
            raise

    def _download(
        self, bucket: JobBucket, request: JobRequest, state: JobState, content: Path
    ) -> PlanManifest:
        names = bucket.download_output(state.output_url, content)
        if PLAN_FILE not in names:
            raise InvocationError(
                f"{request.name}: there is no {PLAN_FILE} in {state.output_url}; delete "
                f"{request.settings.url(request.started_key)}, and run the command again"
            )
        (content / LOG_FILE).touch()
        report = _report(content / "job.json")
        tensorrt, size, digest = describe_built_plan(content / PLAN_FILE)
        return PlanManifest(
            key=request.build.key,
            gpu_model=request.build.gpu.gpu_model or "",
            compute_capability=request.build.gpu.compute_capability or "",
            built_on=request.build.gpu.name,
            image=request.build.image.uri,
            tensorrt=tensorrt,
            driver=str(report.get("driver", "")),
            arguments=request.build.arguments,
            model_sha256=request.build.model.digest,
            plan_bytes=size,
            plan_sha256=digest,
            build_seconds=int(report.get("seconds", 0)),
            job=request.name,
            log_group=request.log_group,
        )


def _content(draft: Path) -> Path:
    content = draft / "content"
    content.mkdir()
    return content


def _report(path: Path) -> dict[str, Any]:
    try:
        report = read_json(path)
    except (OSError, ValueError):
        return {}
    return report if isinstance(report, dict) and isinstance(report.get("seconds"), int) else {}


def _stop(job: PlanJob, show: Callable[[str], None]) -> None:
    """Stop a job that may not have started, and say so if it still runs."""
    try:
        job.stop()
    except AwsError as error:
        show(f"the job cannot be stopped ({error.reason}); stop it in the SageMaker console")


@contextmanager
def _keeping_for_others(show: Callable[[str], None]) -> Iterator[None]:
    """The plan is complete on this machine, so only others miss the copy in the bucket."""
    try:
        with reaching_aws("s3"):
            yield
    except AwsError as error:
        show(
            f"the plan is not kept in the bucket ({error.reason}); "
            "the next build for others starts a job again"
        )


@contextmanager
def _explained(request: JobRequest) -> Iterator[None]:
    """Turn errors of AWS into one with cause and fix."""
    try:
        with reaching_aws("s3"):
            yield
    except AwsError as error:
        if error.code:
            words = str(error.__cause__)  # the explanations are for what AWS says
            raise InvocationError(f"{error.reason}; {explain_failure([words], request)}") from None
        raise InvalidValueError(
            f"{error}. A job that has started goes on: run the command again when it has ended, or "
            "stop it in the SageMaker console"
        ) from None


def _failure_text(request: JobRequest, state: JobState, log: JobLog) -> str:
    said = [str(state.message.get("error", "")), state.failure, *reversed(log.lines)]
    reason = next(filter(None, said), "no reason given").strip()
    if state.status == "Stopped" and not state.failure:
        return (
            f"{request.name}: was stopped; someone has stopped it, or it reached the limit of "
            f"{request.settings.max_seconds} seconds: raise --max-seconds, "
            "and run the command again"
        )
    return f"{request.name}: {state.status.lower()}: {reason}; {explain_failure(said, request)}"
