"""The bucket of the jobs: uploads the inputs, downloads the results,
and keeps the plans for others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from constructs_triton_core.aws_reader import AwsError, AwsReader
from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_tools.building.plans.job_request import TIMING_CACHE, JobRequest, JobSettings
from constructs_triton_tools.building.plans.plan_files import LOG_FILE, PLAN_FILE
from triton_model_check.model_files.plan_manifest import MANIFEST_FILE

if TYPE_CHECKING:
    import boto3

_NOTE_BYTES = 1024


class JobBucket:
    """Reads and writes below the prefix of the settings."""

    def __init__(self, session: boto3.Session, settings: JobSettings) -> None:
        self._reader = AwsReader(session)
        self._client = self._reader.client("s3")
        self._settings = settings
        # Encrypts what the user's own requests write, as the job does.
        key = settings.kms_key
        self._encryption = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key} if key else {}

    def upload_inputs(self, request: JobRequest) -> None:
        """Upload the script, its arguments, the timing cache of earlier builds, and a new model."""
        for name, content in request.job_files.items():
            self._put(request.job_prefix + name, content)
        self._copy(request.timing_key, request.job_prefix + TIMING_CACHE)
        for name, path in request.build.model.files.items():
            key = request.model_prefix + name
            if self._size(key) != path.stat().st_size:
                self._upload(path, key)

    def note_started(self, request: JobRequest) -> None:
        """Write which job builds the plan, so that another run waits for it."""
        self._put(
            request.started_key, json.dumps({"name": request.name, "kind": request.kind}).encode()
        )

    def find_started(self, request: JobRequest) -> JobRequest | None:
        """Return the job that was last started for the same plan, if there is one."""
        size = self._size(request.started_key)
        if size is None or size > _NOTE_BYTES:
            return None
        answer = self._client.get_object(**self._at(request.started_key))
        try:
            note = parse_bounded_json(answer["Body"].read())
            return replace(
                request,
                name=str(note["name"]),
                kind="training" if note["kind"] == "training" else "processing",
            )
        except (KeyError, TypeError, ValueError):
            return None

    def download_kept(self, request: JobRequest, folder: Path) -> bool:
        """Download a plan that was built before, if there is one; return whether there is."""
        if self._size(request.plan_prefix + MANIFEST_FILE) is None:
            return False
        for name in (PLAN_FILE, LOG_FILE, MANIFEST_FILE):
            place = self._at(request.plan_prefix + name)
            self._client.download_file(**place, Filename=str(folder / name))
        return True

    def download_output(self, url: str, folder: Path) -> list[str]:
        """Download the files that the job has written; return their names."""
        bucket, _, prefix = url.removeprefix("s3://").partition("/")
        names = []
        for key in self._keys(bucket, f"{prefix.rstrip('/')}/"):
            name = key.rpartition("/")[2]
            self._client.download_file(bucket, key, str(folder / name))
            names.append(name)
        return names

    def keep(self, request: JobRequest, folder: Path) -> None:
        """Keep a plan for others, and the timing cache for the next build.

        The manifest comes last.
        """
        timing = folder / TIMING_CACHE
        if timing.is_file():
            self._upload(timing, request.timing_key)
        for name in (PLAN_FILE, LOG_FILE, MANIFEST_FILE):
            self._upload(folder / name, request.plan_prefix + name)

    def _put(self, key: str, content: bytes) -> None:
        self._client.put_object(**self._at(key), Body=content, **self._encryption)

    def _upload(self, path: Path, key: str) -> None:
        self._client.upload_file(str(path), **self._at(key), ExtraArgs=self._encryption or None)

    def _copy(self, source: str, destination: str) -> None:
        if self._size(source) is not None:
            encryption = self._encryption or None
            self._client.copy(self._at(source), **self._at(destination), ExtraArgs=encryption)

    def _size(self, key: str) -> int | None:
        """The size of an object; ``None`` if there is none."""
        try:
            answer = self._reader.find("s3", "head_object", **self._at(key))
        except AwsError as error:
            if error.code == "403":  # also if the object does not exist, without s3:ListBucket
                return None
            raise
        return None if answer is None else int(answer["ContentLength"])

    def _keys(self, bucket: str, prefix: str) -> Iterator[str]:
        for item in self._reader.members(
            "s3", "list_objects_v2", "Contents", Bucket=bucket, Prefix=prefix
        ):
            if not item["Key"].endswith("/"):
                yield item["Key"]

    def _at(self, key: str) -> dict[str, str]:
        return {"Bucket": self._settings.bucket, "Key": self._key(key)}

    def _key(self, key: str) -> str:
        return self._settings.prefix + key
