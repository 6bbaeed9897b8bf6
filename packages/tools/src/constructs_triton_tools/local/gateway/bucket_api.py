"""The part of S3's API that ``TritonClient``, ``ModelLibrary`` and boto3's transfers use, for a
folder.

Source: botocore's service model of s3 (rest-xml), with the bucket in the path.
"""

from __future__ import annotations

import asyncio
import errno
import json
import re
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from xml.sax.saxutils import escape

from aiohttp import web

from constructs_triton_tools.local.gateway.bucket_folder import (
    BucketFolder,
    etag_of,
    list_page,
    no_such_key,
)
from constructs_triton_tools.local.gateway.runtime_errors import RuntimeApiError

_KEPT = "x-amz-meta-"
_GIVEN = "given.json"
_MOST_BODY_BYTES = 5 << 30
_CHECKED_BYTES = 16 << 20  # a chunked body has no length, and other bodies arrive at the same time
_NO_ROOM = errno.ENOSPC, errno.EDQUOT
_DENIED = errno.EACCES, errno.EPERM, errno.EROFS
_FILE_AND_FOLDER = errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST


_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def add_bucket_routes(application: web.Application, folder: BucketFolder) -> None:
    """Let an application serve the objects of a folder."""
    api = _BucketApi(folder)
    application.router.add_get("/{bucket}", _answering(api.list_objects))
    application.router.add_get("/{bucket}/{key:.+}", _answering(api.get))
    application.router.add_put("/{bucket}/{key:.+}", _answering(api.put))
    application.router.add_post("/{bucket}/{key:.+}", _answering(api.post))
    application.router.add_delete("/{bucket}/{key:.+}", _answering(api.delete))


def _answering(handler: _Handler) -> _Handler:
    """Answer with S3's error for what a handler raises."""

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except RuntimeApiError as error:
            return _refusal(error)
        except ConnectionError:
            raise
        except OSError as error:
            return _refusal(_error_of_disk(error))

    return answer


def _error_of_disk(error: OSError) -> RuntimeApiError:
    if error.errno in _NO_ROOM:
        return RuntimeApiError(507, "InsufficientStorage", "the disk of the local run is full")
    if error.errno in _DENIED:
        return RuntimeApiError(403, "AccessDenied", "Access Denied")
    if error.errno in _FILE_AND_FOLDER:
        return RuntimeApiError(
            501,
            "NotImplemented",
            "a local run stores keys as files, so no key can begin with another key and a slash",
        )
    return RuntimeApiError(500, "InternalError", f"the disk of the local run: {error.strerror}")


class _BucketApi:
    def __init__(self, folder: BucketFolder) -> None:
        self._folder = folder

    async def list_objects(self, request: web.Request) -> web.Response:
        """ListObjectsV2."""
        bucket = self._folder.bucket(request.match_info["bucket"])
        return _xml("ListBucketResult", await asyncio.to_thread(list_page, bucket, request.query))

    async def get(self, request: web.Request) -> web.StreamResponse:
        """GetObject with ranges, and HeadObject."""
        path = self._folder.path_of(_location(request))
        if not path.is_file():
            raise no_such_key(_location(request))
        return web.FileResponse(path, headers=self._folder.metadata_of(_location(request)))

    async def put(self, request: web.Request) -> web.Response:
        """PutObject, with its conditions, or UploadPart."""
        if "uploadId" in request.query:
            part = self._folder.upload(request.query["uploadId"]) / _part_number(request)
            await self._receive(request, part)
            return web.Response(headers={"ETag": etag_of(part)})
        self._check_conditions(request)
        complete = self._folder.partial_file()
        try:
            await self._receive(request, complete)
            self._check_conditions(request)
            self._folder.place(_location(request), complete, _metadata(request))
        finally:
            complete.unlink(missing_ok=True)
        return web.Response(headers={"ETag": etag_of(self._folder.path_of(_location(request)))})

    async def post(self, request: web.Request) -> web.Response:
        """CreateMultipartUpload or CompleteMultipartUpload."""
        self._folder.path_of(_location(request))
        if "uploads" in request.query:
            upload = self._folder.new_upload()
            (upload / _GIVEN).write_text(json.dumps(_metadata(request)), encoding="utf-8")
            return _xml("InitiateMultipartUploadResult", f"<UploadId>{upload.name}</UploadId>")
        upload = self._folder.upload(request.query.get("uploadId", ""))
        metadata = json.loads((upload / _GIVEN).read_text(encoding="utf-8"))
        whole = await asyncio.to_thread(self._folder.join, upload)
        try:
            self._folder.place(_location(request), whole, metadata)
        finally:
            whole.unlink(missing_ok=True)
        etag = etag_of(self._folder.path_of(_location(request)))
        return _xml("CompleteMultipartUploadResult", f"<ETag>{escape(etag)}</ETag>")

    async def delete(self, request: web.Request) -> web.Response:
        """DeleteObject or AbortMultipartUpload."""
        if "uploadId" in request.query:
            shutil.rmtree(self._folder.upload(request.query["uploadId"]))
        else:
            self._folder.delete(_location(request))
        return web.Response(status=204)

    async def _receive(self, request: web.Request, path: Path) -> None:
        """Write a body of at most 5 GiB, as S3 does,
        to a file that is deleted if it does not end.
        """
        self._folder.expect_room(_expected_size(request))
        received = unchecked = 0
        try:
            with path.open("wb") as file:
                async for piece in request.content.iter_any():
                    received += len(piece)
                    unchecked += len(piece)
                    if received > _MOST_BODY_BYTES:
                        raise _too_large()
                    if unchecked > _CHECKED_BYTES:
                        self._folder.expect_room(unchecked)
                        unchecked = 0
                    file.write(piece)
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    def _check_conditions(self, request: web.Request) -> None:
        if "x-amz-copy-source" in request.headers:
            raise RuntimeApiError(
                501, "NotImplemented", "a local run does not copy objects; upload the object again"
            )
        path = self._folder.path_of(_location(request))
        etag = etag_of(path) if path.is_file() else None
        wanted = request.headers.get("If-Match")
        if (wanted is not None and wanted != etag) or ("If-None-Match" in request.headers and etag):
            raise RuntimeApiError(
                412,
                "PreconditionFailed",
                "At least one of the preconditions you specified did not hold",
            )


def _part_number(request: web.Request) -> str:
    number = request.query.get("partNumber", "")
    if re.fullmatch("[1-9][0-9]{0,3}|10000", number, re.ASCII) is None:
        raise RuntimeApiError(
            400, "InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive"
        )
    return number


def _expected_size(request: web.Request) -> int:
    size = request.content_length or 0
    if size > _MOST_BODY_BYTES:
        raise _too_large()
    return size


def _too_large() -> RuntimeApiError:
    message = "Your proposed upload exceeds the maximum allowed size: 5 GiB for a request"
    return RuntimeApiError(400, "EntityTooLarge", message)


def _location(request: web.Request) -> str:
    return f"s3://{request.match_info['bucket']}/{request.match_info['key']}"


def _metadata(request: web.Request) -> dict[str, str]:
    """Return the headers of an upload that a download has too."""
    kept = {
        name.lower(): value
        for name, value in request.headers.items()
        if name.lower().startswith(_KEPT)
    }
    return {"Content-Type": request.headers.get("Content-Type", "binary/octet-stream"), **kept}


def _xml(name: str, content: str) -> web.Response:
    return web.Response(text=f"<{name}>{content}</{name}>", content_type="application/xml")


def _refusal(error: RuntimeApiError) -> web.Response:
    text = f"<Error><Code>{error.code}</Code><Message>{escape(str(error))}</Message></Error>"
    return web.Response(status=error.status, text=text, content_type="application/xml")
