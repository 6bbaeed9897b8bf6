"""The digest of an archive's content: BLAKE3 over path, mode and content of every member.

The digest does not depend on compression, times, owners or the order of a directory listing. A
folder counts only if it is empty; other folders follow from their content.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from blake3 import blake3

from constructs_triton_core.untrusted.cache_contract import SMALL_BYTES
from triton_model_check.model_repository.members import Member, open_member

__all__ = ["ContentDigest", "hash_files"]

ContentDigest = bytes
"""BLAKE3 of one file's content, 32 bytes."""

CHUNK_BYTES = 1 << 20
_GROUP = 200
# Below this, one thread for each file is faster than several threads.
_THREADED_HASH_BYTES = 32 << 20


def digest_of(members: Iterable[Member], contents: Mapping[str, ContentDigest]) -> str:
    """Return the digest of a whole archive, 64 hexadecimal digits.

    ``contents`` maps the names of files to the digests of their content.
    """
    identity = blake3(b"constructs_triton archive 1\n")
    members = sorted(members, key=lambda member: member.name)
    parents = {member.name.rpartition("/")[0] for member in members}
    for member in members:
        if not member.is_directory:
            _add(identity, b"f", member.name, member.mode, contents[member.name])
        elif member.name not in parents:
            _add(identity, b"d", member.name, member.mode, b"")
    return identity.hexdigest()


def _add(identity: blake3, entry_type: bytes, name: str, mode: int, content: ContentDigest) -> None:
    path = name.encode()
    identity.update(
        entry_type + mode.to_bytes(2, "big") + len(path).to_bytes(4, "big") + path + content
    )


def hash_files(members: Sequence[Member], workers: int) -> dict[str, ContentDigest]:
    """Return the digests of the files among ``members`` by name.

    Several files are read at a time.
    """
    files = [member for member in members if not member.is_directory]
    # A task costs more than reading a small file.
    small = [member for member in files if member.size <= SMALL_BYTES]
    groups = [small[start : start + _GROUP] for start in range(0, len(small), _GROUP)]
    groups += [[member] for member in files if member.size > SMALL_BYTES]
    if len(groups) == 1:
        return _hash_group(groups[0])
    digests: dict[str, ContentDigest] = {}
    with ThreadPoolExecutor(workers) as pool:
        for digests_of_group in pool.map(_hash_group, groups):
            digests.update(digests_of_group)
    return digests


def _hash_group(members: Sequence[Member]) -> dict[str, ContentDigest]:
    return {member.name: _hash_file(member) for member in members}


def _read(file: io.FileIO, member: Member) -> blake3:
    """Hash the content of an open file; a small one, of which there may be thousands,
    without a buffer.
    """
    if member.size <= SMALL_BYTES:
        return blake3(file.read(member.size + 1))
    content = blake3(max_threads=blake3.AUTO if member.size >= _THREADED_HASH_BYTES else 1)
    buffer = memoryview(bytearray(min(CHUNK_BYTES, member.size)))
    while count := file.readinto(buffer):
        content.update(buffer[:count])
    return content


def _hash_file(member: Member) -> ContentDigest:
    with open_member(member) as file:
        return _read(file, member).digest()
