"""Answers of a server that is broken or hostile, by name.

Endless ones are generated while they are read.
"""

from __future__ import annotations

import gzip
import json
from binascii import crc32
from collections.abc import Callable, Iterable
from itertools import chain, repeat
from typing import Any

Answer = Callable[[], Iterable[bytes]]
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
BINARY = "application/vnd.sagemaker-triton.binary+json"
DEEP = b"[" * 100_000
EVENT = b'data: {"a":1}\n\n'


def answer(body: bytes, content_type: str = "application/json", status: str = "200 OK") -> bytes:
    """Return a complete HTTP response."""
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("latin-1") + body


def frame(
    payload: bytes,
    name: str = "PayloadPart",
    kind: str = "event",
    *,
    headers: bytes | None = None,
    total: int | None = None,
    size: int | None = None,
    prelude_checksum: int | None = None,
    checksum: int | None = None,
) -> bytes:
    """Return one message of AWS's event stream, with these values in the place of the right ones.

    ``total`` is the size of the message, and ``size`` that of its headers.
    """
    if headers is None:
        headers = _header(":message-type", kind) + _header(f":{kind}-type", name)
    total = 16 + len(headers) + len(payload) if total is None else total
    prelude = total.to_bytes(4, "big") + (len(headers) if size is None else size).to_bytes(4, "big")
    message = prelude + _checksum(prelude, prelude_checksum) + headers + payload
    return message + _checksum(message, checksum)


def _checksum(data: bytes, given: int | None) -> bytes:
    return (crc32(data) if given is None else given).to_bytes(4, "big")


def _header(name: str, value: str) -> bytes:
    return (
        bytes([len(name)])
        + name.encode()
        + b"\x07"
        + len(value).to_bytes(2, "big")
        + value.encode()
    )


def event_stream(frames: bytes) -> bytes:
    """Return a response stream of SageMaker with these messages."""
    return answer(frames, "application/vnd.amazon.eventstream")


OUTPUT = {"name": "Y", "datatype": "FP32", "shape": [1], "data": [1.5]}


def output(**members: Any) -> bytes:
    """Return a response of one output, with these members in place of the valid ones."""
    return json.dumps({"model_name": "m", "outputs": [{**OUTPUT, **members}]}).encode()


def binary(
    size: Any, payload: bytes, header_size: object = None, **members: Any
) -> tuple[bytes, str]:
    """Return body and content type of an output in binary whose sizes may be wrong."""
    text = output(**{"data": None, "parameters": {"binary_data_size": size}, **members})
    return (
        text + payload,
        f"{BINARY};json-header-size={len(text) if header_size is None else header_size}",
    )


#: Status lines and headers.
HEADS: dict[str, bytes] = {
    "nothing": b"",
    "an empty line": b"\r\n\r\n",
    "a status line without a status": b"HTTP/1.1\r\n\r\n",
    "a status that is text": b"HTTP/1.1 abc OK\r\n\r\n",
    "a negative status": b"HTTP/1.1 -200 OK\r\n\r\n",
    "a status of five digits": b"HTTP/1.1 99999 OK\r\n\r\n",
    "an unknown version": b"HTTP/9.9 200 OK\r\n\r\n",
    "zeros": bytes(1000),
    "an alert of TLS": b"\x15\x03\x01\x00\x02\x02\x46",
    "a long status line": b"HTTP/1.1 200 " + b"a" * 70_000 + b"\r\n\r\n",
    "a switch of protocols": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    "an early hint": b"HTTP/1.1 103 Early Hints\r\n\r\n" + answer(b"{}"),
    "no content": b"HTTP/1.1 204 No Content\r\n\r\nbody",
    "not modified": b"HTTP/1.1 304 Not Modified\r\n\r\n",
    "a redirect to a file": (
        b"HTTP/1.1 302 F\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"
    ),
    "a redirect to nowhere": (
        b"HTTP/1.1 307 T\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    ),
    "many headers": OK + b"a: b\r\n" * 200 + b"\r\n",
    "a long header": OK + b"a: " + b"b" * 70_000 + b"\r\n\r\n",
    "a header without a colon": OK + b"abc\r\n\r\n{}",
    "control characters in a header": OK
    + b"Content-Type: \x1b]0;T\x07\x00\r\nContent-Length: 2\r\n\r\n{}",
    "bytes beyond ASCII in a header": OK
    + b"Content-Type: \xff\xfe\xf0\r\nContent-Length: 2\r\n\r\n{}",
    "an end within the headers": OK + b"Content-Le",
    "two lengths": OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "two equal lengths": OK + b"Content-Length: 2, 2\r\n\r\n{}",
    "a length that is text": OK + b"Content-Length: many\r\n\r\n{}",
    "a length with an exponent": OK + b"Content-Length: 1e3\r\n\r\n{}",
    "a negative length": OK + b"Content-Length: -5\r\n\r\n{}",
    "a length of 100 TB": OK + b"Content-Length: 99999999999999\r\n\r\n{}",
    "a length of 5,000 digits": OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n{}",
    "a length with other digits": OK + "Content-Length: ²\r\n\r\n{}".encode("latin-1"),
    "a length of half a megabyte too much": OK + b"Content-Length: 500000\r\n\r\n{}",
    "a length and chunks": OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}",
    "an unknown transfer encoding": OK
    + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "a chunk of 16 EiB": CHUNKED + b"ffffffffffffffff\r\n",
    "a chunk of 16 EiB with an event": CHUNKED + b"ffffffffffffffff\r\n" + EVENT,
    "a chunk of 4,000 digits": CHUNKED + b"f" * 4000 + b"\r\n{}",
    "a chunk of size -1": CHUNKED + b"-1\r\n" + bytes(100_000),
    "a chunk of size -5": CHUNKED + b"-5\r\n" + bytes(100_000),
    "a chunk size that is text": CHUNKED + b"zz\r\n{}\r\n",
    "no chunk size": CHUNKED,
    "a chunk that ends early": CHUNKED + b"ff\r\n{}",
    "a chunk without a line end": CHUNKED + b"2\r\n{}0\r\n\r\n",
    "no last chunk": CHUNKED + b"2\r\n{}\r\n",
}

#: Bodies and their content types, with a correct head.
BODIES: dict[str, tuple[bytes, str]] = {
    "an empty body": (b"", "application/json"),
    "a web page": (b"<html>404</html>", "text/html"),
    "bytes that are not UTF-8": (b'{"outputs":\xff\xfe}', "application/json"),
    "UTF-16": ('{"outputs":[]}'.encode("utf-16"), "application/json"),
    "gzip": (gzip.compress(b'{"outputs":[]}'), "application/json"),
    "deep lists": (DEEP, "application/json"),
    "deep objects": (b'{"a":' * 20_000, "application/json"),
    "a deep error": (b'{"error":' + b"[" * 900 + b"]" * 900 + b"}", "application/json"),
    "an integer of 5,000 digits": (
        b'{"outputs":[{"shape":[' + b"9" * 5000 + b"]}]}",
        "application/json",
    ),
    "a number beyond FP64": (output(data=[0]).replace(b"[0]", b"[1e400]"), "application/json"),
    "NaN": (output(data=[float("nan")]), "application/json"),
    "Infinity in a shape": (output(shape=[float("inf")]), "application/json"),
    "a list": (b"[]", "application/json"),
    "null": (b"null", "application/json"),
    "half a surrogate": (output(name="\ud800", shape=[7]), "application/json"),
    "an error with half a surrogate": (rb'{"error":"\ud800"}', "application/json"),
    "too many elements": (output(shape=[2**62, 2**62]), "application/json"),
    "thousands of dimensions": (output(shape=[2**63 - 1] * 45_000), "application/json"),
    "an output twice": (json.dumps({"outputs": [OUTPUT, OUTPUT]}).encode(), "application/json"),
    "a binary size beyond the body": binary(10**18, b"abcd"),
    "a negative binary size": binary(-4, b"abcd"),
    "a binary size with a fraction": binary(4.5, b"abcd"),
    "a binary size that contradicts the shape": binary(8, b"abcdefgh"),
    "bytes after the last output": binary(4, b"abcdefgh"),
    "strings beyond the output": binary(8, b"\xff\xff\xff\xff" * 2, datatype="BYTES", shape=[1]),
    "fewer strings than the shape": binary(8, b"\0\0\0\0" * 2, datatype="BYTES", shape=[10**15]),
    "a header beyond the body": binary(4, b"abcd", 10**17),
    "a negative header": binary(4, b"abcd", -1),
    "a header of thousands of digits": binary(4, b"abcd", "9" * 5000),
    "two headers": binary(4, b"abcd", "5;json-header-size=6"),
    "an event that is a list": (b"data: []\n\n", "text/event-stream"),
    "an event that is not JSON": (EVENT + b"data: {]\n\n", "text/event-stream"),
    "an event that is not UTF-8": (EVENT + b"data: \xff\n\n", "text/event-stream"),
    "an event that reports an error": (
        EVENT + b'data: {"error":{"a":[1]}}\n\n',
        "text/event-stream",
    ),
    "a deep event": (b"data: " + DEEP + b"\n\n", "text/event-stream"),
    "an event that ends early": (EVENT + b'data: {"a":', "text/event-stream"),
    "a long line without an end": (b"data: " + b"x" * 70_000, "text/event-stream"),
    "an event of many empty lines": (b"data:\n" * 90_000, "text/event-stream"),
}

TYPES = b"\x0d:message-type\x07\x00\x05event"
#: Messages in the event stream of SageMaker, after a valid one.
FRAMES: dict[str, bytes] = {
    "a wrong checksum of the prelude": frame(EVENT, prelude_checksum=1),
    "a wrong checksum of the message": frame(EVENT, checksum=1),
    "a message of no bytes": frame(EVENT, total=0),
    "a message shorter than its headers": frame(EVENT, total=20),
    "a message of 4 GiB": frame(EVENT, total=2**32 - 1),
    "a message of 20 MiB that ends early": frame(EVENT, total=20 * 2**20),
    "headers of 4 GiB": frame(EVENT, size=2**32 - 1),
    "headers beyond the message": frame(b"", size=1000),
    "a header of an unknown type": frame(EVENT, headers=b"\x01a\x63"),
    "a header beyond the headers": frame(EVENT, headers=b"\xffa"),
    "a header that is not UTF-8": frame(EVENT, headers=b"\x01\xff\x07\x00\x01\xff"),
    "a header twice": frame(EVENT, headers=TYPES * 2),
    "no headers": frame(EVENT, headers=b""),
    "an event without a type": frame(EVENT, headers=TYPES),
    "an unknown event": frame(EVENT, "Surprise"),
    "an exception that is sent as an event": frame(b'{"Message":"m"}', "ModelStreamError"),
    "an initial response": frame(b"{}", "initial-response"),
    "an unknown kind of message": frame(EVENT, kind="surprise"),
    "an error": frame(b"", kind="error"),
    "an unknown exception": frame(b"{}", "Surprise", "exception"),
    "an exception that is not JSON": frame(b"\xff{", "ModelStreamError", "exception"),
    "a deep exception": frame(DEEP, "ModelStreamError", "exception"),
    "an exception with numbers": frame(
        b'{"Message":5,"ErrorCode":[]}', "ModelStreamError", "exception"
    ),
    "half a message": frame(EVENT)[:20],
    "bytes that are no message": b"data: no frames at all\n\n" * 20,
}

#: Bodies of errors, and their statuses.
ERRORS: dict[str, tuple[bytes, str]] = {
    "an error that is not UTF-8": (b"\xff\xfe" * 50, "500 E"),
    "a deep error": (DEEP, "500 E"),
    "an error of a deep value": (b'{"error":' + b"[" * 980 + b"]" * 980 + b"}", "400 E"),
    "an error that is a number": (b'{"error":1e400,"message":5,"Message":5}', "400 E"),
    "an error that is a list": (b'{"message":[],"Message":[1],"__type":[]}', "400 E"),
    "an error with a code of another type": (
        b'{"code":{"a":1},"__type":5,"message":null}',
        "503 E",
    ),
    "an error with half a surrogate": (rb'{"error":"\ud800","message":"\ud800"}', "507 E"),
    "an error of a list": (b"[1, 2]", "429 E"),
    "an error of XML": (b"<Error><Code>a</Code>" + b"<a>" * 10_000, "404 E"),
    "an error without a body": (b"", "599 E"),
    "an error with values of other types": (
        b'{"__type":"ModelError","Message":{},"OriginalStatusCode":"x","OriginalMessage":{"a":1}}',
        "424 E",
    ),
    "an error with a status beyond HTTP": (
        rb'{"__type":"ModelError","OriginalStatusCode":1e400,"OriginalMessage":"\ud800","LogStreamArn":5}',
        "424 E",
    ),
}


def _endless(start: bytes, piece: bytes) -> Answer:
    # Small pieces are sent together.
    block = piece * (1 + 65536 // len(piece))
    return lambda: chain([start], repeat(block))


#: What never ends before the body does.
ENDLESS: dict[str, Answer] = {
    "interim responses": _endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "interim responses with headers": _endless(
        b"", b"HTTP/1.1 100 C\r\n" + b"a: b\r\n" * 90 + b"\r\n"
    ),
    "headers": _endless(OK, b"a: b\r\n"),
    "a status line": _endless(b"HTTP/1.1 200 ", b"a"),
    "a header line": _endless(OK + b"a: ", b"b"),
    "an error": _endless(b"HTTP/1.1 500 E\r\n\r\n", b"x"),
    "an error of small chunks": _endless(CHUNKED.replace(b"200 OK", b"400 E"), b"2\r\nxx\r\n"),
}

#: Bodies that never end, some without a complete event.
ENDLESS_BODIES: dict[str, Answer] = {
    "a body": _endless(OK + b"\r\n", bytes(1000)),
    "a body of chunks": _endless(CHUNKED, b"3e8\r\n" + bytes(1000) + b"\r\n"),
    "a body of small chunks": _endless(CHUNKED, b"1\r\nx\r\n"),
    "a chunk size": _endless(CHUNKED, b"0"),
    "the extension of a chunk": _endless(CHUNKED + b"2;", b"a"),
    "trailers": _endless(CHUNKED + b"2\r\n{}\r\n0\r\n", b"a: b\r\n"),
    "a chunk of size -1": _endless(CHUNKED + b"-1\r\n", bytes(1000)),
    "a chunk of 16 EiB": _endless(CHUNKED + b"fffffffffffffff\r\n", bytes(1000)),
    "comments": _endless(OK + b"\r\n", b": comment\n\n"),
    "messages without content": _endless(OK + b"\r\n", frame(b"")),
    "messages of comments": _endless(OK + b"\r\n", frame(b": comment\n\n")),
    "events": _endless(CHUNKED, b"f\r\n" + EVENT + b"\r\n"),
}
