"""Reads what a Triton server counts of each model: requests, batches, and time in queue and in
compute.

The counters begin when a model is loaded, so figures of a period are the difference of two
readings. Each step of an ensemble and each model that another one calls has counters of its own.
The queue of an ensemble itself is nearly empty, because its requests wait in the queues of its
steps.
Source: triton server docs/protocol/extension_statistics.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.errors import LocalEndpointError

#: Characters of a model's name that may be in a URL: Triton decodes no escapes in it.
NOT_QUOTED = "!$&'()*+,;=:@%"
_MILLISECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Durations:
    """A number of requests, and the sum of what each of them took, in nanoseconds."""

    count: int = 0
    nanoseconds: int = 0

    @property
    def mean_ms(self) -> float:
        """The mean in milliseconds; 0 without requests."""
        return self.nanoseconds / self.count / _MILLISECOND if self.count else 0.0

    def since(self, earlier: Durations) -> Durations:
        """Return what was added after ``earlier``."""
        return Durations(self.count - earlier.count, self.nanoseconds - earlier.nanoseconds)


_NONE = Durations()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatistics:
    """What the server counted of one version of a model.

    Args:
        name: Name of the model.
        version: Version of the model.
        inferences: Inferences that were computed; a request with a batch of 3 is 3. Without cache
            hits.
        executions: Batches that the backend executed. Without cache hits.
        last_inference_ms: Time of the last inference, in milliseconds since 1970; 0 if there was
            none.
        success: Requests with a response, and their time in the server.
        failure: Requests with an error.
        queue: Time in the queue, as the next three: once for each successful request.
        compute_input: Time to prepare the input tensors.
        compute_infer: Time in the model.
        compute_output: Time to take the output tensors.
        cache_hit: Requests that the response cache answered.
        cache_miss: Requests that it did not answer.
        batches: Executions by batch size. Ensembles have none.
    """

    name: str
    version: str
    inferences: int = 0
    executions: int = 0
    last_inference_ms: int = 0
    success: Durations = _NONE
    failure: Durations = _NONE
    queue: Durations = _NONE
    compute_input: Durations = _NONE
    compute_infer: Durations = _NONE
    compute_output: Durations = _NONE
    cache_hit: Durations = _NONE
    cache_miss: Durations = _NONE
    batches: Mapping[int, int] = field(default_factory=dict)

    @property
    def mean_batch_size(self) -> float:
        """Inferences of an execution; 0 without executions."""
        return self.inferences / self.executions if self.executions else 0.0

    @property
    def mean_compute_ms(self) -> float:
        """The mean time of a request in the backend, in milliseconds: input,
        inference and output.
        """
        return self.compute_input.mean_ms + self.compute_infer.mean_ms + self.compute_output.mean_ms

    def to_dict(self) -> dict[str, Any]:
        """Return an entry of ``model_stats`` with these figures,
        which ``parse_statistics`` reads.
        """
        return {
            "name": self.name,
            "version": self.version,
            "last_inference": self.last_inference_ms,
            "inference_count": self.inferences,
            "execution_count": self.executions,
            "inference_stats": {
                theirs: _entry(getattr(self, ours)) for ours, theirs in _DURATIONS.items()
            },
            "batch_stats": [
                {"batch_size": size, "compute_infer": {"count": count}}
                for size, count in self.batches.items()
            ],
        }

    def since(self, earlier: ModelStatistics) -> ModelStatistics:
        """Return the counters of the time after ``earlier``.

        A model that was loaded again between the two readings has counted from zero, so its own
        counters are the answer.
        """
        if any(
            getattr(self, duration).count < getattr(earlier, duration).count
            for duration in _DURATIONS
        ):
            return self
        durations = {
            duration: getattr(self, duration).since(getattr(earlier, duration))
            for duration in _DURATIONS
        }
        batches = {
            size: count - earlier.batches.get(size, 0) for size, count in self.batches.items()
        }
        return ModelStatistics(
            name=self.name,
            version=self.version,
            inferences=self.inferences - earlier.inferences,
            executions=self.executions - earlier.executions,
            last_inference_ms=self.last_inference_ms,
            batches={size: count for size, count in batches.items() if count},
            **durations,
        )


#: The fields of durations, in Triton's words.
_DURATIONS = {
    "success": "success",
    "failure": "fail",
    "queue": "queue",
    "compute_input": "compute_input",
    "compute_infer": "compute_infer",
    "compute_output": "compute_output",
    "cache_hit": "cache_hit",
    "cache_miss": "cache_miss",
}


def statistics_since(
    later: Iterable[ModelStatistics], earlier: Iterable[ModelStatistics]
) -> tuple[ModelStatistics, ...]:
    """Return the counters of the time between two readings, for each model of the later one."""
    before = {(model.name, model.version): model for model in earlier}
    return tuple(
        model.since(before.get((model.name, model.version), ModelStatistics(name="", version="")))
        for model in later
    )


def statistics_paths(index: bytes) -> tuple[str, ...]:
    """Return the path of the statistics of each model that is ready,
    from the server's repository index.
    """
    with _answers():
        ready = sorted(
            model["name"] for model in parse_bounded_json(index) if model.get("state") == "READY"
        )
        return tuple(
            f"models/{quote(name, safe=NOT_QUOTED)}/stats" for name in dict.fromkeys(ready)
        )


def decode_statistics(answers: Iterable[bytes]) -> tuple[ModelStatistics, ...]:
    """Read the server's answers.

    The answer for a model that was unloaded in between is an error.
    """
    with _answers():
        models: list[Any] = []
        for answer in answers:
            decoded = parse_bounded_json(answer)
            if "error" not in decoded:
                models += decoded["model_stats"]
        return parse_statistics(models)


def parse_statistics(models: Iterable[Mapping[str, Any]]) -> tuple[ModelStatistics, ...]:
    """Read the entries of ``model_stats``, sorted by name and version."""
    return tuple(sorted(map(_model, models), key=lambda model: (model.name, model.version)))


@contextmanager
def _answers() -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LocalEndpointError(
            "statistics: the server's answer cannot be read "
            f"({type(error).__name__}); use another server"
        ) from None


def _model(entry: Mapping[str, Any]) -> ModelStatistics:
    durations = entry.get("inference_stats", {})
    return ModelStatistics(
        name=str(entry["name"]),
        version=str(entry["version"]),
        inferences=int(entry.get("inference_count", 0)),
        executions=int(entry.get("execution_count", 0)),
        last_inference_ms=int(entry.get("last_inference", 0)),
        batches={
            int(batch["batch_size"]): int(batch["compute_infer"]["count"])
            for batch in entry.get("batch_stats", ())
        },
        **{ours: _durations(durations.get(theirs, {})) for ours, theirs in _DURATIONS.items()},
    )


def _durations(entry: Mapping[str, Any]) -> Durations:
    return Durations(int(entry.get("count", 0)), int(entry.get("ns", 0)))


def _entry(durations: Durations) -> dict[str, int]:
    return {"count": durations.count, "ns": durations.nanoseconds}
