"""HTTP over a Unix socket, with the standard library."""

from __future__ import annotations

import http.client
import os
import socket
from pathlib import Path


class UnixHTTPConnection(http.client.HTTPConnection):
    """An HTTP connection to the socket file at ``path``, which may be of any length."""

    def __init__(self, path: Path, *, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def _encode_request(self, request: str) -> bytes:
        """Send a path as it is: Triton compares the bytes with the names of folders.

        http.client refuses what is not ASCII, and what would end the line of the request.
        """
        return request.encode("utf-8")

    def connect(self) -> None:
        """Connect to the socket file."""
        # The address of a Unix socket has room for 107 bytes, so the folder is named by a
        # descriptor.
        folder = os.open(self._path.parent, os.O_PATH | os.O_DIRECTORY)
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(self.timeout)
        try:
            client.connect(f"/proc/self/fd/{folder}/{self._path.name}")
        except OSError:
            client.close()
            raise
        finally:
            os.close(folder)
        self.sock = client
