"""What a model archive leaves out, and what it refuses to carry.

Rules are those of gitignore (package ``pathspec``), read from ``.tritonignore`` at the repository's root. The
defaults come first, so that a line of the file can take one back with ``!``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from constructs_triton.errors import ArchiveError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

__all__ = ["CREDENTIAL_PATTERNS", "DEFAULT_PATTERNS", "IGNORE_FILE", "IgnoreRules"]

IGNORE_FILE = ".tritonignore"

DEFAULT_PATTERNS = (
    ".git",
    ".gitignore",
    ".gitattributes",
    ".hg",
    ".svn",
    "__pycache__/",
    ".ipynb_checkpoints/",
    ".mypy_cache/",
    ".pytest_cache/",
    ".ruff_cache/",
    ".idea/",
    ".vscode/",
    ".DS_Store",
    "Thumbs.db",
    "*~",
    "*.swp",
    IGNORE_FILE,
)

CREDENTIAL_PATTERNS = (
    ".env",
    ".env.*",
    ".aws",
    ".azure",
    ".ssh",
    ".gnupg",
    ".kube",
    ".docker",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".git-credentials",
    ".boto",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.kdbx",
    "*.keystore",
    "*.ppk",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "credentials",
    "credentials.json",
    "client_secret*.json",
    "service-account*.json",
    "service_account*.json",
)


@dataclass(frozen=True)
class IgnoreRules:
    """The rules of one repository; ``lines`` are those of its ``.tritonignore``."""

    lines: tuple[str, ...] = ()

    @classmethod
    def from_directory(cls, repository: Path) -> IgnoreRules:
        """Read ``.tritonignore`` at the repository's root; none is no rule beyond the defaults.

        Raises:
            ArchiveError: the file cannot be read or holds a pattern that gitignore does not know.
        """
        path = repository / IGNORE_FILE
        try:
            rules = cls(tuple(path.read_text(encoding="utf-8").splitlines()))
        except FileNotFoundError:
            return cls()
        except (OSError, UnicodeDecodeError) as error:
            raise ArchiveError(f"{path}: cannot be read, got {error}; make it a UTF-8 text file") from error
        rules.compile(path)
        return rules

    def compile(self, path: Path) -> None:
        """Build the patterns now, so that a wrong one is reported with the file it stands in."""
        try:
            _ = self._own
        except ValueError as error:
            raise ArchiveError(
                f"{path}: holds a wrong pattern, got {error}; see gitignore's syntax"
            ) from error

    @cached_property
    def _own(self) -> GitIgnoreSpec:
        return _compile(self.lines)

    @cached_property
    def _all(self) -> GitIgnoreSpec:
        return _compile((*DEFAULT_PATTERNS, *self.lines))

    def leaves_out(self, path: str) -> bool:
        """Whether the archive leaves ``path`` out: relative to the repository, a folder's ending in ``/``."""
        return self._all.match_file(path)

    def refuses(self, path: str) -> bool:
        """Whether ``path`` looks like a credential and no line of ``.tritonignore`` speaks of it.

        A line that names it decides: a pattern leaves it out, a pattern with ``!`` lets it in.
        """
        return _credentials().match_file(path) and self._own.check_file(path).include is None


def _compile(lines: tuple[str, ...]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec  # noqa: PLC0415 - its import costs more than a small pack

    return GitIgnoreSpec.from_lines(lines)


@cache
def _credentials() -> GitIgnoreSpec:
    return _compile(CREDENTIAL_PATTERNS)
