"""The model sync with very many archives: several runs of the function place and prune all.

With ``EVERY_CALL=1`` there are 10,000, as in the figures of
``dev/project/deploy_time_faults.md``, which takes an hour; else 200.
"""

from __future__ import annotations

import logging
import os
import resource
import time
from collections import Counter
from typing import Any

import pytest
from sync_requests import (
    CloudFormation,
    Context,
    Faults,
    cloudformation,
    faults,
    index,
    make_event,
    put_archive,
    s3,
)
from test_sync_resume import Invocations, invocations

from constructs_triton_functions.model_sync import handler
from constructs_triton_functions.model_sync.manifest import content_name

__all__ = ["cloudformation", "faults", "invocations", "s3"]  # fixtures

BUDGET_MINUTES = 2
COUNT = 10_000 if os.environ.get("EVERY_CALL") == "1" else 200
#: AWS Lambda quotas: the payload of an asynchronous invocation, before it was raised in 2025.
MOST_PAYLOAD_BYTES = 256 * 1024
#: Runs of the function in which everything is placed, if each ends this early.
RUNS = 3


class Run(Context):
    """A run whose time ends after it has begun a number of archives."""

    def __init__(self, begun: int) -> None:
        super().__init__()
        self._left = begun

    def get_remaining_time_in_millis(self) -> int:
        self._left -= 1
        return 900_000 if self._left > 0 else 60_000


def archives_of(archive: dict[str, Any], version: int) -> list[dict[str, Any]]:
    """Archives of one content, each with a name of its own."""
    names = [f"model-{number:05d}" for number in range(COUNT)]
    digest = f"{version:08x}"
    return [{**archive, "Name": name, "TargetModel": content_name(name, digest)} for name in names]


def run_to_the_end(event: dict[str, Any], invocations: Invocations, begun: int) -> list[int]:
    """Run the function until nothing is left; returns the sizes of what it passed on."""
    sizes = []
    handler.handler(event, Run(begun))
    while invocations:
        passed_on = invocations.pop()
        sizes.append(len(repr(passed_on)))
        handler.handler(passed_on, Run(begun))
    return sizes


def test_many_archives(
    s3: Any,
    cloudformation: CloudFormation,
    invocations: Invocations,
    faults: Faults,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All are placed by several runs, replaced by an update, and pruned by later deployments."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    operations = faults("none", 0, 0)
    archive = put_archive(s3, "aaaa1", b"content")
    started = time.monotonic()
    first = make_event(s3, cloudformation, "Create", archives_of(archive, 1))
    sizes = run_to_the_end(first, invocations, COUNT // RUNS + 1)
    seconds = time.monotonic() - started

    assert [each["Status"] for each in cloudformation.responses] == ["SUCCESS"]
    assert len(sizes) >= RUNS - 1
    assert max(sizes) < MOST_PAYLOAD_BYTES
    assert count(s3) == COUNT
    assert len(index(s3)["target_models"]) == COUNT
    called = Counter(operations)
    # A run that continues asks again only about what ran at the same time as its first archive.
    assert called["CopyObject"] == COUNT
    assert called.total() < 4.1 * COUNT + 100
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(  # noqa: T201 - figures of the page
        f"{COUNT} archives: {len(sizes) + 1} runs, {called.total()} calls, {seconds:.0f} s, "
        f"{max(sizes)} bytes passed on, {memory:.0f} MiB with the S3 of the test"
    )

    # An update replaces all; the old ones are pruned a day later, as far as there is time.
    second = make_event(
        s3, cloudformation, "Update", archives_of(archive, 2), PruneAfterSeconds="3600"
    )
    run_to_the_end(second, invocations, 2 * COUNT)
    assert count(s3) == 2 * COUNT
    now = time.time() + 86_400
    monkeypatch.setattr(time, "time", lambda: now)
    third = make_event(
        s3, cloudformation, "Update", archives_of(archive, 2), PruneAfterSeconds="3600"
    )
    run_to_the_end(third, invocations, COUNT + COUNT // 2)
    assert COUNT < count(s3) < 2 * COUNT
    run_to_the_end(third, invocations, 2 * COUNT)
    assert {each["Status"] for each in cloudformation.responses} == {"SUCCESS"}
    assert count(s3) == COUNT
    assert index(s3)["retired"] == {}


def count(s3: Any) -> int:
    """The number of archives in the bucket."""
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket="models-bucket")
    return sum(each["Key"].endswith(".tar.gz") for page in pages for each in page["Contents"])
