"""The cost of the local gateway: invocations through it against Triton's own /invocations.

    python benchmarks/gateway.py [--size BYTES] [--count N] [--rounds N]

Prints the median of each and their ratio; a 600 KB binary body by default, both ways. The same
client calls the same server both ways in turns, so that other load on the machine affects both. The
quick tenth is close to the result of an idle machine.
"""

from __future__ import annotations

import argparse
import http.client
import statistics
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "e2e"))

from local_assembly import AssemblyBuilder, adding_model, below

from constructs_triton_client.wire import EncodedRequest, encode_request
from constructs_triton_tools.local import LocalEndpoint
from constructs_triton_tools.local.server.private_address import SOCKET_NAME
from constructs_triton_tools.local.server.unix_http import UnixHTTPConnection


class Connection:
    """One connection to a URL that takes invocations."""

    def __init__(self, connection: http.client.HTTPConnection, path: str) -> None:
        self._connection = connection
        self._path = path
        self.seconds: list[float] = []

    def invoke(self, body: bytes, content_type: str) -> None:
        """Send one request, read the answer, note how long it took."""
        start = time.perf_counter()
        self._connection.request("POST", self._path, body, {"Content-Type": content_type})
        response = self._connection.getresponse()
        answer = response.read()
        self.seconds.append(time.perf_counter() - start)
        if response.status != 200:
            raise SystemExit(f"{self._path}: answered {response.status} {answer[:200]!r}")

    def milliseconds(self) -> tuple[float, float]:
        """The median and the first decile, without the first tenth, which warms up caches."""
        warm = self.seconds[len(self.seconds) // 10 :]
        return statistics.median(warm) * 1000, statistics.quantiles(warm, n=10)[0] * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--size", type=int, default=600_000, help="bytes of the tensor (default: 600000)"
    )
    parser.add_argument("--count", type=int, default=300, help="requests of a round (default: 300)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default: 3)")
    arguments = parser.parse_args()
    request = encode_request({"X": np.zeros(arguments.size // 4, dtype=np.float32)})
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalEndpoint.from_assembly(assembly(Path(folder))) as local,
    ):
        direct = Connection(UnixHTTPConnection(server_socket(local), timeout=60), "/invocations")
        url = urlsplit(local.endpoint_url)
        connection = http.client.HTTPConnection(str(url.hostname), url.port)
        gateway = Connection(connection, "/endpoints/Benchmark/invocations")
        print(f"{arguments.size} bytes each way, {arguments.count} requests a round")
        print("                         median   quick tenth")
        for _ in range(arguments.rounds):
            run_round(direct, gateway, request, arguments.count)


def run_round(direct: Connection, gateway: Connection, request: EncodedRequest, count: int) -> None:
    """Send requests to both in turns and print their times."""
    direct.seconds, gateway.seconds = [], []
    for _ in range(count):
        direct.invoke(request.body, request.content_type)
        gateway.invoke(request.body, request.content_type)
    without, through = direct.milliseconds(), gateway.milliseconds()
    ratios = [many / few for many, few in zip(through, without, strict=True)]
    print("  Triton /invocations   {:7.2f} ms {:7.2f} ms".format(*without))
    print("  through the gateway   {:7.2f} ms {:7.2f} ms".format(*through))
    print("  ratio                 {:7.2f}    {:7.2f}".format(*ratios))


def assembly(folder: Path) -> Path:
    """A cloud assembly with one small Python model."""
    builder = AssemblyBuilder(folder / "cdk.out")
    key = builder.asset("model", below("m", adding_model(1)))
    builder.single_model("Model", key, {"SAGEMAKER_TRITON_LOG_VERBOSE": "false"})
    builder.endpoint("Benchmark", {"AllTraffic": ("Model", 1)})
    written: Path = builder.write()
    return written


def server_socket(local: LocalEndpoint) -> Path:
    """Where the server itself listens."""
    (endpoint,) = local.description["endpoints"]
    (variant,) = endpoint["variants"].values()
    return Path(variant["log"]).with_name(SOCKET_NAME)


if __name__ == "__main__":
    main()
