"""The ceiling of the load test's generator, beside hey and wrk where they are installed.

    python benchmarks/load_test.py [--seconds N]

Each sends as fast as it can to a server on this machine that answers immediately, with 16 requests
in flight. Prints requests per second, and requests per second of CPU, which is what one core can
send. The server has a process of its own. ``apt-get install hey wrk`` installs both tools on
Debian.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import re
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from botocore.credentials import Credentials

from constructs_triton_tools.measuring.load_test.prepared_requests import (
    HttpSender,
    PreparedRequest,
    Signer,
    SigningScope,
)

IN_FLIGHT = 16
BODY = bytes(259)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class NullServer(asyncio.Protocol):
    """Answers each request as soon as its body has arrived."""

    def connection_made(self, transport: Any) -> None:
        self._transport, self._data = transport, b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self._data, 0, end)
            total = end + 4 + int(length[1] if length else 0)
            if len(self._data) < total:
                return
            self._data = self._data[total:]
            self._transport.write(ANSWER)


def serve(port: Any) -> None:
    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(NullServer, "127.0.0.1", 0)
        port.value = server.sockets[0].getsockname()[1]
        await server.serve_forever()

    asyncio.run(run())


async def send_for(request: PreparedRequest, seconds: float) -> int:
    """Send as fast as possible, ``IN_FLIGHT`` at a time, and return the number of answers."""
    end = time.perf_counter() + seconds
    count = 0

    async def worker(sender: HttpSender) -> None:
        nonlocal count
        while time.perf_counter() < end:
            status, message = await sender.send(request)
            if status != 200:
                raise SystemExit(f"the server answered {status} {message}")
            count += 1

    async with HttpSender(Signer(Credentials("a", "b")), is_local=True) as sender:
        await asyncio.gather(*(worker(sender) for _ in range(IN_FLIGHT)))
    return count


def measure(name: str, action: Callable[[], int], who: int) -> None:
    """Run a generator and print its rate, and its rate for each second of CPU."""
    before, start = resource.getrusage(who), time.perf_counter()
    count = action()
    after, elapsed = resource.getrusage(who), time.perf_counter() - start
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{name:22} {count / elapsed:9,.0f}/s {count / cpu:9,.0f} per second of CPU", flush=True)


def run_tool(words: list[str], pattern: str) -> int:
    output = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return int(re.search(pattern, output)[1])  # type: ignore[index]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--seconds", type=int, default=4, help="seconds of each measurement (default: 4)"
    )
    seconds = parser.parse_args().seconds
    port = multiprocessing.Value("i", 0)
    server = multiprocessing.Process(target=serve, args=(port,), daemon=True)
    server.start()
    while not port.value:
        time.sleep(0.05)
    url = f"http://127.0.0.1:{port.value}/endpoints/x/invocations"
    headers = {"Content-Type": "application/json"}
    own, children = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    for name, scope in (
        ("load-test", None),
        ("load-test, signed", SigningScope("us-east-1", "sagemaker")),
    ):
        request = PreparedRequest(url, headers, BODY, scope)
        measure(name, lambda request=request: asyncio.run(send_for(request, seconds)), own)  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as folder:
        body, script = Path(folder) / "body", Path(folder) / "post.lua"
        body.write_bytes(BODY)
        script.write_text(f'wrk.method = "POST"\nwrk.body = string.rep("x", {len(BODY)})\n')
        hey = [
            "hey",
            "-z",
            f"{seconds}s",
            "-c",
            str(IN_FLIGHT),
            "-m",
            "POST",
            "-D",
            str(body),
            "-cpus",
            "1",
            url,
        ]
        wrk = ["wrk", "-t1", f"-c{IN_FLIGHT}", f"-d{seconds}s", "-s", str(script), url]
        if shutil.which("hey"):
            measure("hey", lambda: run_tool(hey, r"\[200\]\s+(\d+)"), children)
        if shutil.which("wrk"):
            measure("wrk", lambda: run_tool(wrk, r"(\d+) requests in"), children)
    server.terminate()


if __name__ == "__main__":
    main()
