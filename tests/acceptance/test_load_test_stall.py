"""A stop of the server for one second is seen by the load test, over real
connections; budget: 1 minute.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from constructs_triton_tools.measuring.load_test.prepared_requests import PreparedRequest
from constructs_triton_tools.measuring.load_test.step import Limits, StepSettings
from constructs_triton_tools.measuring.load_test.step_runner import StepRunner

SERVER = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from load_test import NullServer

async def run():
    server = await asyncio.get_running_loop().create_server(NullServer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(run())
"""
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def stop_for_a_second(process_id: int) -> None:
    """Stop a process in the middle of the step, and let it continue a second later."""
    time.sleep(4)
    os.kill(process_id, signal.SIGSTOP)
    time.sleep(1)
    os.kill(process_id, signal.SIGCONT)


def test_stop_of_a_second_is_in_the_percentiles() -> None:
    """At 400 requests per second the p99 is at least 900 ms, and every request is answered."""
    words = [sys.executable, "-c", SERVER, str(BENCHMARKS)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/endpoints/x/invocations"
        request = PreparedRequest(url, {"Content-Type": "application/json"}, b"{}")
        pause = threading.Thread(target=stop_for_a_second, args=(server.pid,))
        pause.start()
        settings = StepSettings(seconds=8, warm_up_seconds=1, max_in_flight=5000)
        result = StepRunner([request], Limits(latency_ms=100)).measure(400, settings)
        pause.join()
        server.terminate()
    assert result.p99_ms is not None
    assert result.p99_ms >= 900
    assert result.good == result.requests
