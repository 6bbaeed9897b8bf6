"""A running job: starts it, follows its state and its log, and stops it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from constructs_triton_core.aws_reader import AwsError, AwsReader
from constructs_triton_tools.aws.waiting import wait_for
from constructs_triton_tools.building.plans.job_request import JobRequest

if TYPE_CHECKING:
    import boto3

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
        # A job takes long, and no lost connection may end the wait for it.
        self._reader = AwsReader(session, retries={"mode": "standard", "max_attempts": 8})
        self._request = request

    def start(self) -> None:
        """Start the job."""
        self._reader.require(
            "sagemaker", f"create_{self._request.kind}_job", **self._request.request
        )

    def stop(self) -> None:
        """Ask SageMaker to stop the job, which then takes up to two minutes."""
        self._reader.find("sagemaker", f"stop_{self._request.kind}_job", **self._named)

    def follow(self, log: JobLog, show: Callable[[str], None]) -> JobState:
        """Wait for the end of the job, and show its steps and the lines of its log."""
        shown = ""

        def show_news(state: JobState) -> None:
            nonlocal shown
            step = state.detail or state.status
            if step != shown:
                show(f"{self._request.name}: {step}")
                shown = step
            for line in log.new_lines():
                show(f"  {line}")

        return wait_for(
            self.describe, lambda state: state.is_final, pause_seconds=PAUSE_SECONDS, show=show_news
        )

    def describe_if_known(self) -> JobState | None:
        """Return the state of the job; ``None`` if SageMaker does not know it."""
        answer = self._reader.find("sagemaker", f"describe_{self._request.kind}_job", **self._named)
        return None if answer is None else self._state(answer)

    def describe(self) -> JobState:
        """Return the state of the job."""
        operation = f"describe_{self._request.kind}_job"
        return self._state(self._reader.require("sagemaker", operation, **self._named))

    @property
    def _named(self) -> dict[str, str]:
        return {f"{self._request.kind.capitalize()}JobName": self._request.name}

    def _state(self, answer: Mapping[str, Any]) -> JobState:
        is_training = self._request.kind == "training"
        return _training_state(answer) if is_training else self._processing_state(answer)

    def _processing_state(self, answer: Mapping[str, Any]) -> JobState:
        return JobState(
            status=answer["ProcessingJobStatus"],
            detail="",
            failure=answer.get("FailureReason", ""),
            message=_read_message(answer.get("ExitMessage", "")),
            seconds=_seconds(answer.get("ProcessingStartTime"), answer.get("ProcessingEndTime")),
            output_url=self._request.settings.url(self._request.output_prefix),
        )


def _training_state(answer: Mapping[str, Any]) -> JobState:
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
    """Return the JSON object of the script.

    SageMaker puts words of its own around it, at most 1 KB.
    """
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

    def __init__(
        self, session: boto3.Session, request: JobRequest, note: Callable[[str], None]
    ) -> None:
        self._reader = AwsReader(session)
        self._request = request
        self._note = note
        self._seen: set[str] = set()
        self._start = 0
        self._is_readable = True
        self.lines: list[str] = []

    def new_lines(self) -> Iterator[str]:
        """Yield the lines that were not there at the last call."""
        if not self._is_readable:
            return
        try:
            yield from self._read()
        except AwsError as error:
            if not error.code:
                raise
            if error.is_absent:
                return  # no job has written into the group yet
            self._is_readable = False
            self._note(f"the log cannot be read: {error}")

    def _read(self) -> Iterator[str]:
        request: dict[str, Any] = {
            "logGroupName": self._request.log_group,
            "logStreamNamePrefix": f"{self._request.name}/",
            "startTime": self._start,
        }
        for _ in range(_LOG_PAGES):
            answer = self._reader.require("logs", "filter_log_events", **request)
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
