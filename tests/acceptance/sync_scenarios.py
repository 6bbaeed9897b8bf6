"""Requests of CloudFormation to the model sync, at whose calls faults happen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sync_faults import Event, Function
from sync_requests import DESTINATION, PART, CloudFormation, make_event, put_archive
from test_files import files_event

DAY = 24 * 60 * 60.0
LARGE = bytes(range(256)) * (11 * PART // 5 // 256)
"""An archive of three parts."""
KEY, OTHER_KEY = (f"arn:aws:kms:us-east-1:123456789012:key/{number}" for number in (1, 2))
PRUNED_AFTER = str(int(DAY / 2))


@dataclass(frozen=True)
class Scenario:
    """Requests that came before, each a day later, and the one at whose calls faults happen."""

    before: tuple[Event, ...]
    event: Event

    def begin(self, function: Function) -> None:
        """Bring the bucket to the state before the last request."""
        function.now = 0.0
        for event in self.before:
            function.deploy(event)
            function.now += DAY


Build = Callable[[Any, CloudFormation], Scenario]


def created(s3: Any, cloudformation: CloudFormation) -> Scenario:
    """A small archive and a large one are placed."""
    archives = [put_archive(s3, "aaaa1", b"first"), put_archive(s3, "cccc1", LARGE)]
    return Scenario((), make_event(s3, cloudformation, "Create", archives))


def updated(s3: Any, cloudformation: CloudFormation) -> Scenario:
    """An archive is replaced, and one that lost its name a day before is pruned."""
    contents = {"aaaa1": b"old", "bbbb1": b"middle", "cccc1": LARGE}
    archives = [
        {**put_archive(s3, digest, body), "Name": "net"} for digest, body in contents.items()
    ]
    return _updates(
        [
            make_event(s3, cloudformation, "Update", [archive], PruneAfterSeconds=PRUNED_AFTER)
            for archive in archives
        ]
    )


def encrypted_again(s3: Any, cloudformation: CloudFormation) -> Scenario:
    """The key changes, also of an archive that only an earlier deployment had."""
    old, new = put_archive(s3, "aaaa1", b"first"), put_archive(s3, "cccc1", LARGE)
    steps = [([old, new], KEY), ([new], KEY), ([new], OTHER_KEY)]
    return _updates(
        [
            make_event(s3, cloudformation, "Update", archives, EncryptionKey=key)
            for archives, key in steps
        ]
    )


def deleted(s3: Any, cloudformation: CloudFormation) -> Scenario:
    """The prefix is emptied."""
    create = created(s3, cloudformation).event
    create["ResourceProperties"]["RemoveOnDelete"] = "true"
    delete = {
        **create,
        "RequestType": "Delete",
        "PhysicalResourceId": f"s3://{DESTINATION}/models/",
    }
    return Scenario((create,), delete)


def files_updated(s3: Any, cloudformation: CloudFormation) -> Scenario:
    """The folder of a model is replaced, and one that lost its name a day before is pruned."""
    return _updates(
        [
            files_event(
                s3,
                cloudformation,
                "Update",
                {"net/config.pbtxt": name, "net/1/labels.txt": b"cat"},
                {"net/1/model.onnx": LARGE},
                PruneAfterSeconds=PRUNED_AFTER,
            )
            for name in (b"old", b"middle", b"new")
        ]
    )


def _updates(events: list[Event]) -> Scenario:
    """A create and its updates, each with the properties before it."""
    events[0]["RequestType"] = "Create"
    for old, new in pairwise(events):
        new["OldResourceProperties"] = old["ResourceProperties"]
    return Scenario(tuple(events[:-1]), events[-1])


SCENARIOS: dict[str, Build] = {
    build.__name__: build for build in (created, updated, encrypted_again, deleted, files_updated)
}
