"""That the memory of request bodies stays in the process: without this,
each body costs page faults.
"""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from constructs_triton_tools.local.gateway import freed_memory

#: Receives bodies as asyncio does, into buffers of 256 KiB, and prints the page faults per body.
PROGRAM = """
import resource, runpy, socket, sys

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def receive(count):
    received = []
    for _ in range(count):
        sender.sendall(bytes(100_000))
        missing = 100_000
        while missing:
            received.append(receiver.recv(256 * 1024))
            missing -= len(received[-1])
        del received[:-3]

def faults_per_body():
    receive(10)
    before = faults()
    receive(100)
    return (faults() - before) / 100

sender, receiver = socket.socketpair()
first = faults_per_body()
runpy.run_path(sys.argv[1])["keep_freed_memory"]()
print(first, faults_per_body())
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="other C libraries keep freed memory or do not"
)
def test_bodies_cause_page_faults_until_freed_memory_is_kept() -> None:
    """If the first number falls to 0, glibc or asyncio has changed and the
    module can be deleted.
    """
    command = [sys.executable, "-I", "-S", "-c", PROGRAM, freed_memory.__file__]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    before, after = (float(number) for number in done.stdout.split())
    assert before > 10
    assert after < 1
