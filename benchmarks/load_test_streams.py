"""What the load test's generator needs for an event of a stream, beside reading the same bytes raw.

    python benchmarks/load_test_streams.py [--events N]

A server in a process of its own sends 16 streams at a time, with a pause of 2 ms after each event,
so that most events arrive alone, as tokens do. Prints the CPU time of the reader for each event, in
the quickest of five rounds. The raw reader counts the ends of events in what a socket receives.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from constructs_triton_tools.local.gateway.relay import payload_part
from constructs_triton_tools.measuring.load_test.prepared_requests import (
    HttpSender,
    PreparedRequest,
)

STREAMS = 16
ROUNDS = 5
EVENT = (
    b'data: {"model_name":"m","model_version":"1","num_output_tokens":1,"text_output":" word"}\n\n'
)
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: %s\r\n\r\n"
Read = Callable[[int, str], Awaitable[int]]


def serve(port: Any, events: int) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_framed = b"response-stream" in await reader.readuntil(b"\r\n\r\n")
        kind = b"application/vnd.amazon.eventstream" if is_framed else b"text/event-stream"
        part = payload_part(EVENT) if is_framed else EVENT
        writer.write(HEAD % kind)
        for _ in range(events):
            writer.write(b"%x\r\n%s\r\n" % (len(part), part))
            await asyncio.sleep(0.002)
        writer.write(b"0\r\n\r\n")
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port.value = server.sockets[0].getsockname()[1]
        await server.serve_forever()

    asyncio.run(run())


async def read_raw(port: int, path: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST %s HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}" % path.encode())
    count, data = 0, b""
    while not data.endswith(b"0\r\n\r\n"):
        data = await reader.read(65536)
        count += data.count(b"\n\n")
    writer.close()
    return count


async def read_as_load_test(port: int, path: str) -> int:
    async with HttpSender(None, is_local=True) as sender:
        count = 0

        def note(_: float, tokens: int | None, _total: int | None) -> None:
            nonlocal count
            count += tokens or 0

        status, message = await sender.stream(
            PreparedRequest(f"http://127.0.0.1:{port}{path}", {}, b"{}"), note
        )
        if status != 200 or message:
            raise SystemExit(f"the server answered {status} {message}")
        return count


def measure(name: str, read: Read, port: int, path: str, raw: float | None) -> float:
    """Read all streams, and print and return the microseconds of CPU for each event."""

    async def run() -> int:
        return sum(await asyncio.gather(*(read(port, path) for _ in range(STREAMS))))

    asyncio.run(run())  # imports, and the first connections
    used = min(_cost(run) for _ in range(ROUNDS))
    ratio = "" if raw is None else f"  ratio {used / raw:.1f}"
    print(f"{name:40} {used:6.1f} us of CPU per event{ratio}", flush=True)
    return used


def _cost(run: Callable[[], Coroutine[Any, Any, int]]) -> float:
    before = time.process_time()
    count = asyncio.run(run())
    return (time.process_time() - before) / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--events", type=int, default=500, help="events of each stream (default: 500)"
    )
    port = multiprocessing.Value("i", 0)
    server = multiprocessing.Process(
        target=serve, args=(port, parser.parse_args().events), daemon=True
    )
    server.start()
    while not port.value:
        time.sleep(0.05)
    plain, framed = "/invocations", "/endpoints/x/invocations-response-stream"
    raw = measure("raw socket", read_raw, port.value, plain, None)
    measure("load-test --stream, /invocations", read_as_load_test, port.value, plain, raw)
    measure("load-test --stream, response stream", read_as_load_test, port.value, framed, raw)
    server.terminate()


if __name__ == "__main__":
    main()
