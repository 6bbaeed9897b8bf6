"""What arguments of ``tritonserver`` reserve when the server starts.

Source: triton server src/command_line_parser.cc, ``--pinned-memory-pool-byte-size``,
``--cuda-memory-pool-byte-size`` and ``--cache-config``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_PINNED = "--pinned-memory-pool-byte-size"
_CUDA = "--cuda-memory-pool-byte-size"
_CACHE = "--cache-config"
_BYTES = re.compile(r"\d{1,15}")
_CUDA_POOL = re.compile(r"(\d{1,4}):(\d{1,15})")
_LOCAL_CACHE = re.compile(r"local,size=(\d{1,15})")


@dataclass(frozen=True)
class ServerPools:
    """The pools of a server, in bytes.

    ``pinned`` is ``None`` for the default, and ``cuda`` has no GPU whose pool has its default.
    ``cache`` is the response cache in host memory.
    """

    pinned: int | None = None
    cuda: Mapping[int, int] = field(default_factory=dict)
    cache: int = 0

    @classmethod
    def of_arguments(cls, arguments: str) -> ServerPools:
        """Read the arguments of a server; one that is no number of bytes has its default."""
        pinned: int | None = None
        cuda: dict[int, int] = {}
        cache = 0
        for name, value in _values(arguments.split()):
            if name == _PINNED and _BYTES.fullmatch(value):
                pinned = int(value)
            elif name == _CUDA and (pool := _CUDA_POOL.fullmatch(value)):
                cuda[int(pool[1])] = int(pool[2])
            elif name == _CACHE and (size := _LOCAL_CACHE.fullmatch(value)):
                cache = int(size[1])
        return cls(pinned, cuda, cache)


def _values(arguments: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the options that have a value, after ``=`` or as the next argument."""
    for index, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if equals:
            yield name, value
        elif index + 1 < len(arguments):
            yield name, arguments[index + 1]
