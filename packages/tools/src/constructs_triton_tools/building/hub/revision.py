"""A repository of Hugging Face at one commit: which files it has, and their digests.

Source: the documentation of ``huggingface_hub``, ``HfApi.list_repo_tree``. Of a file in Git LFS or
Xet the hub knows the SHA-256 digest, of others the digest that Git has: SHA-1 of a header and the
content.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from constructs_triton_core.errors import ArchiveError, InvalidValueError, MissingDependencyError
from constructs_triton_core.spelling import quoted

__all__ = ["HubFile", "HubRevision", "reaching_the_hub"]

_COMMIT = re.compile(r"[0-9a-f]{40}")
_READ_BYTES = 1 << 20
#: Files of the repository that no server reads.
_OF_GIT = (".gitattributes", ".gitignore")
_MOST_FILES = 10_000


@dataclass(frozen=True)
class HubFile:
    """A file of a repository. ``sha256`` is ``None`` for a file that Git itself stores."""

    path: str
    size_bytes: int
    git_digest: str
    sha256: str | None

    def verify(self, file: Path) -> None:
        """Compare a downloaded file with the hub's size and digest.

        Raises:
            ArchiveError: it differs, or is a link.
        """
        size = file.lstat().st_size
        if file.is_symlink() or size != self.size_bytes:
            raise ArchiveError(
                f"{self.path}: must have {self.size_bytes} bytes, got {size}; copy it again"
            )
        digest = hashlib.sha256() if self.sha256 else hashlib.sha1(usedforsecurity=False)
        if not self.sha256:
            digest.update(b"blob %d\0" % size)
        with file.open("rb") as content:
            while block := content.read(_READ_BYTES):
                digest.update(block)
        if digest.hexdigest() != (self.sha256 or self.git_digest):
            raise ArchiveError(
                f"{self.path}: its content is not that of the repository; copy it again"
            )


@dataclass(frozen=True)
class HubRevision:
    """A commit of a repository. ``token`` is not shown, and is sent to the hub only."""

    repository: str
    commit: str
    token: str | None = field(repr=False, default=None)

    @classmethod
    def of(cls, repository: str, revision: str) -> HubRevision:
        """Return a commit, with the token of the environment.

        Raises:
            InvalidValueError: the revision is no commit. The message has the commit that it is now.
            MissingDependencyError: ``huggingface_hub`` is not installed.
        """
        token = os.environ.get("HF_TOKEN") or None
        if _COMMIT.fullmatch(revision):
            return cls(repository, revision, token)
        with reaching_the_hub(repository):
            found = _api(token).model_info(repository, revision=revision).sha
        raise InvalidValueError(
            f'--revision: must be a commit, which never changes, got "{revision}"; '
            f"write --revision {found}, which it is now"
        )

    def files(self, include: Sequence[str], exclude: Sequence[str]) -> list[HubFile]:
        """Return the files that match a pattern of ``include`` and none of ``exclude``.

        Raises:
            InvalidValueError: there are none, more than 10,000, or one is outside the folder.
        """
        utilities = _hub("huggingface_hub.utils")
        with reaching_the_hub(self.repository):
            listed = list(self._listed())
        names = utilities.filter_repo_objects(
            [file.path for file in listed],
            allow_patterns=list(include) or None,
            ignore_patterns=[*_OF_GIT, *exclude],
        )
        chosen = set(names)
        if not chosen:
            raise InvalidValueError(
                f"{self.repository}: no file matches; it has "
                f"{quoted(file.path for file in listed)}; change --include or --exclude"
            )
        return [file for file in listed if file.path in chosen]

    def download(self, file: HubFile, folder: Path) -> Path:
        """Download a file into a folder, and return its path."""
        with reaching_the_hub(self.repository):
            found = _hub("huggingface_hub").hf_hub_download(
                self.repository,
                file.path,
                revision=self.commit,
                local_dir=folder,
                token=self.token or False,
                endpoint=os.environ.get("HF_ENDPOINT"),
            )
        return Path(found)

    def _listed(self) -> Iterator[HubFile]:
        tree = _api(self.token).list_repo_tree(
            self.repository, recursive=True, revision=self.commit
        )
        number = 0
        for entry in tree:
            if not hasattr(entry, "blob_id"):  # a folder
                continue
            number += 1
            path = PurePosixPath(entry.path)
            if path.is_absolute() or ".." in path.parts or number > _MOST_FILES:
                raise InvalidValueError(
                    f"{self.repository}: has a file outside its folder, or more than "
                    f"{_MOST_FILES:,} files, got {entry.path!r}; copy it by hand"
                )
            lfs = entry.lfs
            yield HubFile(entry.path, entry.size, entry.blob_id, lfs.sha256 if lfs else None)


def _api(token: str | None) -> Any:
    # False: not the token that `hf auth login` has stored.
    return _hub("huggingface_hub").HfApi(
        endpoint=os.environ.get("HF_ENDPOINT"), token=token or False
    )


def _hub(module: str) -> Any:
    from importlib import import_module  # noqa: PLC0415 - an optional package

    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"huggingface_hub is not installed ({error}); run "
            "`pip install 'constructs-triton[hub]'`"
        ) from None


@contextmanager
def reaching_the_hub(repository: str) -> Iterator[None]:
    """Word the errors of the hub, without addresses, which can have signatures."""
    errors = _hub("huggingface_hub.errors")
    try:
        yield
    except errors.GatedRepoError:
        raise InvalidValueError(
            f"{repository}: is gated, and this account may not read it; accept its terms on its "
            "page at Hugging Face, and set HF_TOKEN to a token with read access"
        ) from None
    except errors.RepositoryNotFoundError:
        raise InvalidValueError(
            f"{repository}: does not exist, or is private; check the name, or set HF_TOKEN to a "
            "token that may read it"
        ) from None
    except errors.RevisionNotFoundError:
        raise InvalidValueError(
            f"{repository}: has no such revision; copy the commit from its page at Hugging Face, "
            'under "Files and versions"'
        ) from None
    except errors.HfHubHTTPError as error:
        status = getattr(error.response, "status_code", "no status")
        raise InvalidValueError(
            f"{repository}: Hugging Face refused the request ({status}); check HF_TOKEN, or try "
            "again later"
        ) from None
    except errors.HFValidationError as error:
        raise InvalidValueError(f"REPOSITORY: {error}; write it as OWNER/NAME") from None
    except errors.LocalEntryNotFoundError:
        raise InvalidValueError(f"{repository}: {_UNREACHABLE}") from None
    except OSError as error:
        raise InvalidValueError(f"{repository}: {_UNREACHABLE} ({type(error).__name__})") from None
    except Exception as error:
        # httpx and requests, by the version of the library, have no common class of errors.
        if type(error).__module__.partition(".")[0] not in ("httpx", "httpx2", "requests"):
            raise
        raise InvalidValueError(f"{repository}: {_UNREACHABLE} ({type(error).__name__})") from None


_UNREACHABLE = (
    "Hugging Face cannot be reached; check the network, the proxy and HF_ENDPOINT, and whether "
    "HF_HUB_OFFLINE is set"
)
