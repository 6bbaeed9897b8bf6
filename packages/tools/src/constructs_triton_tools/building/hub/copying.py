"""Copies the files of a repository of Hugging Face into a folder or below a prefix of S3.

Every file is downloaded and verified before the first one is in its place, so that nothing is
half-written: neither a folder that a model is served from, nor a prefix that SageMaker copies.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constructs_triton_core.aws_reader import AwsError, reaching_aws
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.drafts import (
    partial_folder,
    place_folder,
    place_of_draft,
    remove_abandoned,
)
from constructs_triton_tools.aws.s3_client import s3_client
from constructs_triton_tools.aws.verified_upload import upload_verified
from constructs_triton_tools.building.hub.revision import HubFile, HubRevision

if TYPE_CHECKING:
    import boto3

__all__ = ["copy_to_folder", "copy_to_prefix"]

Note = Callable[[str], None]
#: What the library writes beside the files that it downloads.
_CACHE = ".cache"


def copy_to_folder(
    revision: HubRevision, files: Sequence[HubFile], folder: Path, note: Note
) -> None:
    """Copy files into a folder that does not exist, or is empty.

    Raises:
        InvalidValueError: the folder has files, or is a link; the hub refuses a file.
        ArchiveError: a file is not that of the repository.
    """
    _check_folder(folder)
    with _downloaded(revision, files, place_of_draft(folder), note) as complete:
        place_folder(complete, folder)


def copy_to_prefix(
    revision: HubRevision,
    files: Sequence[HubFile],
    place: tuple[str, str],
    session: boto3.Session,
    note: Note,
) -> None:
    """Copy files below a prefix of S3 that has no objects. ``place`` are bucket and prefix.

    Each object is compared with its file. If an upload fails, what was uploaded is deleted.

    Raises:
        AwsError: S3 cannot be reached, or refuses a call.
        InvalidValueError: the prefix has objects; the hub refuses a file.
        ArchiveError: a file is not that of the repository, or an object not that of the file.
    """
    bucket, prefix = place
    client = s3_client(session)
    with reaching_aws("s3"):
        _check_prefix(client, bucket, prefix)
    with _downloaded(revision, files, Path(tempfile.gettempdir()), note) as complete:
        uploaded: list[str] = []
        try:
            for file in files:
                key = f"{prefix}{file.path}"
                note(f"upload {file.path} ({file.size_bytes / 1e6:.1f} MB)")
                uploaded.append(key)
                why_not = upload_verified(client, complete / file.path, bucket, key)
                if why_not:
                    note(f"{file.path}: {why_not}")
        except BaseException:
            _delete(client, bucket, uploaded, note)
            raise


def _delete(client: Any, bucket: str, keys: Sequence[str], note: Note) -> None:
    """Delete the objects of a copy that failed, and name those that S3 does not delete."""
    for key in keys:
        try:
            with reaching_aws("s3"):
                client.delete_object(Bucket=bucket, Key=key)
        except AwsError as error:
            note(f"s3://{bucket}/{key}: cannot be deleted ({error.reason}); delete it yourself")


def _check_folder(folder: Path) -> None:
    if folder.is_symlink():
        raise InvalidValueError(
            f"{folder}: is a link to {folder.readlink()}, where other models may read the files; "
            "give a folder of its own"
        )
    if folder.exists() and not folder.is_dir():
        raise InvalidValueError(f"{folder}: is a file; give a folder")
    if folder.is_dir():
        remove_abandoned(folder)
    present = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if present:
        links = [name for name in present if (folder / name).is_symlink()]
        what = f"files, such as {present[0]}"
        if links:
            what = f"links into a cache, such as {links[0]}, which are not packed"
        raise InvalidValueError(
            f"{folder}: must be empty, so that it has only the files of one commit, got {what}; "
            "move them away, or give another folder"
        )


def _check_prefix(client: Any, bucket: str, prefix: str) -> None:
    found = client.list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=1).get("Contents", [])
    if found:
        raise InvalidValueError(
            f"s3://{bucket}/{prefix}: must be empty, because SageMaker copies everything below it, "
            f"got {found[0]['Key']!r}; give another prefix, such as one with the commit"
        )


@contextmanager
def _downloaded(
    revision: HubRevision, files: Sequence[HubFile], beside: Path, note: Note
) -> Iterator[Path]:
    """Download and verify all files into a folder that exists only in this context."""
    remove_abandoned(beside)  # before the free space is counted
    total = sum(file.size_bytes for file in files)
    free = shutil.disk_usage(beside).free
    if total > free:
        raise InvalidValueError(
            f"{beside}: needs {total / 1e6:,.1f} MB for the files, got {free / 1e6:,.1f} MB of "
            "free space; make room, or choose a folder with more (TMPDIR for a copy to S3)"
        )
    with partial_folder(beside) as draft:
        folder = draft / "content"
        folder.mkdir()
        for file in files:
            note(f"copy {file.path} ({file.size_bytes / 1e6:.1f} MB)")
            file.verify(revision.download(file, folder))
        shutil.rmtree(folder / _CACHE, ignore_errors=True)
        yield folder
