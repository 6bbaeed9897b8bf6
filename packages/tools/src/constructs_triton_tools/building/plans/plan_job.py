"""A running job: starts it, follows its state and its log, and stops it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from constructs_triton_tools.building.plans.job_request import JobRequest

if TYPE_CHECKING:
    import boto3

__all__ = ["JobLog", "JobState", "PlanJob"]

PAUSE_SECONDS = 10.0
_FINAL = ("Completed", "Failed", "Stopped")
_LOG_PAGES = 50


@dataclass(frozen=True, slots=True)
class JobState:
    """What SageMaker says of a job.

    Args:
        status: ``InProgress``, ``Stopping``, ``Completed``, ``Failed`` or ``Stopped``.
        detail: The step of a training job, such as ``Downloading``; empty for processing jobs.
        failure: Why it failed, in the words of SageMaker.
        message: What the script has reported.
        seconds: How long the instance ran; ``None`` if it is not known.
        output_url: Where the results are.
    """

    status: str
    detail: str
    failure: str
    message: dict[str, Any]
    seconds: float | None
    output_url: str

    @property
    def is_final(self) -> bool:
        """Whether the job has ended."""
        return self.status in _FINAL


class PlanJob:
    """One job, by its request."""

    def __init__(self, session: boto3.Session, request: JobRequest) -> None:
        from botocore.config import Config

        config = Config(retries={"mode": "standard", "max_attempts": 8})
        make: Any = session.client
        self._client = make("sagemaker", region_name=request.settings.region, config=config)
        self._request = request

    def start(self) -> None:
        """Start the job. botocore's errors are those of the service."""
        if self._request.kind == "processing":
            self._client.create_processing_job(**self._request.request)
        else:
            self._client.create_training_job(**self._request.request)

    def stop(self) -> None:
        """Ask SageMaker to stop the job, which then takes up to two minutes."""
        if self._request.kind == "processing":
            self._client.stop_processing_job(ProcessingJobName=self._request.name)
        else:
            self._client.stop_training_job(TrainingJobName=self._request.name)

    def follow(self, log: JobLog, show: Callable[[str], None]) -> JobState:
        """Wait for the end of the job, and show its steps and the lines of its log."""
        shown = ""
        while True:
            state = self.describe()
            step = state.detail or state.status
            if step != shown:
                show(f"{self._request.name}: {step}")
                shown = step
            for line in log.new_lines():
                show(f"  {line}")
            if state.is_final:
                return state
            time.sleep(PAUSE_SECONDS)

    def describe_if_known(self) -> JobState | None:
        """Return the state of the job; ``None`` if SageMaker does not know it."""
        from botocore.exceptions import ClientError

        try:
            return self.describe()
        except ClientError as error:
            if error.response["Error"]["Code"] in ("ValidationException", "ResourceNotFound"):
                return None
            raise

    def describe(self) -> JobState:
        """Return the state of the job."""
        if self._request.kind == "processing":
            return self._processing_state()
        return self._training_state()

    def _processing_state(self) -> JobState:
        answer = self._client.describe_processing_job(ProcessingJobName=self._request.name)
        return JobState(
            status=answer["ProcessingJobStatus"],
            detail="",
            failure=answer.get("FailureReason", ""),
            message=_read_message(answer.get("ExitMessage", "")),
            seconds=_seconds(answer.get("ProcessingStartTime"), answer.get("ProcessingEndTime")),
            output_url=self._request.settings.url(self._request.output_prefix),
        )

    def _training_state(self) -> JobState:
        answer = self._client.describe_training_job(TrainingJobName=self._request.name)
        failure = answer.get("FailureReason", "")
        seconds = answer.get("BillableTimeInSeconds", answer.get("TrainingTimeInSeconds"))
        return JobState(
            status=answer["TrainingJobStatus"],
            detail=answer.get("SecondaryStatus", ""),
            failure=failure,
            message=_read_message(failure),
            seconds=None if seconds is None else float(seconds),
            output_url=answer.get("ModelArtifacts", {}).get("S3ModelArtifacts", ""),
        )


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else (end - start).total_seconds()


def _read_message(text: str) -> dict[str, Any]:
    """Return the JSON object of the script. SageMaker puts words of its own around it, at most 1 KB."""
    start = text.find('{"stage"')
    if start < 0:
        return {}
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
    except ValueError:  # cut off
        return {}
    return value if isinstance(value, dict) else {}


class JobLog:
    """The lines of a job's log, each one once. What cannot be read is noted once."""

    def __init__(self, session: boto3.Session, request: JobRequest, note: Callable[[str], None]) -> None:
        make: Any = session.client
        self._client = make("logs", region_name=request.settings.region)
        self._request = request
        self._note = note
        self._seen: set[str] = set()
        self._start = 0
        self._is_readable = True
        self.lines: list[str] = []

    def new_lines(self) -> Iterator[str]:
        """Yield the lines that were not there at the last call."""
        from botocore.exceptions import ClientError

        if not self._is_readable:
            return
        try:
            yield from self._read()
        except ClientError as error:
            if error.response["Error"]["Code"] == "ResourceNotFoundException":
                return  # no job has written into the group yet
            self._is_readable = False
            self._note(
                f"the log cannot be read ({error.response['Error']['Code']}); allow logs:FilterLogEvents"
            )

    def _read(self) -> Iterator[str]:
        request: dict[str, Any] = {
            "logGroupName": self._request.log_group,
            "logStreamNamePrefix": f"{self._request.name}/",
            "startTime": self._start,
        }
        for _ in range(_LOG_PAGES):
            answer = self._client.filter_log_events(**request)
            for event in answer["events"]:
                if event["eventId"] not in self._seen:
                    self._seen.add(event["eventId"])
                    self._start = max(self._start, event["timestamp"])
                    line = str(event["message"]).rstrip("\n")
                    self.lines.append(line)
                    yield line
            if not answer.get("nextToken"):
                return
            request["nextToken"] = answer["nextToken"]
