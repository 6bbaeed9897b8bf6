"""What NVIDIA's image of each Triton release has: ``releases.json``.

``None`` means that it is not known: the release is older or newer than the table, or the sources of
its row lack the fact. AWS builds its images from the same sources, and KServe runs NVIDIA's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from constructs_triton_core.facts.versions import is_at_least, parse_version
from triton_model_check.facts.published import load

__all__ = [
    "FIELDS",
    "Release",
    "first_release_with_fields",
    "in_words",
    "new_fields",
    "newest_known_release",
    "release",
    "releases",
    "unknown_facts",
]

FIELDS = "fields of config.pbtxt"
"""The word of ``unknown_facts`` for them."""


@dataclass(frozen=True, slots=True)
class Release:
    """One release of Triton.

    ``onnxruntime``
        Version of ONNX Runtime, such as ``"1.24.4"``.
    ``python``
        Python of the image, such as ``"3.12"``.
    ``supports_bf16``
        Whether the ONNX Runtime backend has the data type BF16.
    ``backends``
        Names of the backends of the image ``py3``.
    """

    version: str
    onnxruntime: str | None
    python: str | None
    supports_bf16: bool | None
    backends: frozenset[str] | None

    @property
    def is_known(self) -> bool:
        """Whether the content of the image is known."""
        return None not in (self.onnxruntime, self.python, self.backends)


@cache
def releases() -> tuple[Release, ...]:
    """Return every release of the table, oldest first."""
    rows = load("releases")["releases"]
    found: list[Release] = []
    for version in sorted(rows, key=parse_version):
        row = rows[version]
        supports_bf16 = row["supports_bf16"]
        if supports_bf16 is None and found:
            # The backend has not dropped a data type in any release, so one whose source was not
            # found has those of the release before it. It may have more.
            supports_bf16 = found[-1].supports_bf16 or None
        backends = row["backends"]
        found.append(
            Release(
                version,
                row["onnxruntime"],
                row["python"],
                supports_bf16,
                None if backends is None else frozenset(backends),
            )
        )
    return tuple(found)


@cache
def release(version: str | None) -> Release | None:
    """Return the row of a release; ``None`` if the table does not have it."""
    return next((row for row in releases() if row.version == version), None)


def newest_known_release() -> Release:
    """Return the newest release with a known content, which is assumed where none is named."""
    return next(row for row in reversed(releases()) if row.is_known)


@cache
def new_fields() -> dict[str, str]:
    """Return the first release of each field and enum value of ``config.pbtxt``.

    The names are those of ``model_config.proto``, such as ``"ModelConfig.runtime"``. The fields of
    the table's first release are left out: all releases of the table have them.
    """
    added = load("releases")["new_fields"]
    first = first_release_with_fields()
    return {name: since for since, names in added.items() if since != first for name in names}


@cache
def first_release_with_fields() -> str:
    """Return the oldest release of which the fields of ``config.pbtxt`` are known."""
    return str(min(load("releases")["new_fields"], key=parse_version))


def unknown_facts(version: str) -> tuple[str, ...]:
    """Return what is not known of the image of a release, in words.

    Fields of ``config.pbtxt`` are unknown for older releases only: no release has removed one, so a
    newer release has at least those of the table.

    Raises:
        InvalidValueError: the version is not ``YY.MM``.
    """
    row = release(version)
    unknown = []
    if row is None or row.backends is None:
        unknown.append("backends")
    if row is None or row.python is None:
        unknown.append("Python")
    if row is None or row.onnxruntime is None:
        unknown.append("ONNX Runtime")
    if not is_at_least(version, first_release_with_fields()):
        unknown.append(FIELDS)
    return tuple(unknown)


def in_words(facts: tuple[str, ...]) -> str:
    """Return facts as an enumeration: ``backends, Python and ONNX Runtime``."""
    *first, last = facts
    return f"{', '.join(first)} and {last}" if first else last
