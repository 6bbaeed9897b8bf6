"""What a model archive leaves out, and what it refuses to carry.

Rules are those of gitignore (package ``pathspec``), read from ``.tritonignore`` at the repository's root and
in any folder below it, where it speaks of what lies in that folder and decides over those above. A line of a
file decides over the defaults, which are names: it can take one back with ``!``.
"""

from __future__ import annotations

import fnmatch
import os
import re
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
    "__pycache__",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".idea",
    ".vscode",
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
    """The rules that hold in one folder of a repository.

    ``lines`` are those of the ``.tritonignore`` that is nearest; ``folder`` is where it lies, relative to the
    repository and ending in ``/``, or ``""`` at its root; ``above`` are the rules that hold around it.
    """

    lines: tuple[str, ...] = ()
    folder: str = ""
    above: IgnoreRules | None = None

    @classmethod
    def from_directory(cls, repository: Path) -> IgnoreRules:
        """The rules at a repository's root; without a ``.tritonignore`` there, only the defaults.

        Raises:
            ArchiveError: the file cannot be read or holds a pattern that gitignore does not know.
        """
        path = repository / IGNORE_FILE
        return cls(_read_lines(path))._checked(path) if os.path.lexists(path) else cls()

    def below(self, path: Path, folder: str) -> IgnoreRules:
        """The rules in ``folder`` of the repository, whose own ``.tritonignore`` is ``path``.

        Raises:
            ArchiveError: as :meth:`from_directory`.
        """
        return IgnoreRules(_read_lines(path), f"{folder}/", self)._checked(path)

    def leaves_out(self, path: str) -> bool:
        """Whether the archive leaves ``path`` out: relative to the repository, a folder's ending in ``/``."""
        decision = self._decision(path)
        return _matches(path, DEFAULT_PATTERNS) if decision is None else decision

    def refuses(self, path: str) -> bool:
        """Whether ``path`` looks like a credential and no line of ``.tritonignore`` speaks of it.

        A line that names it decides: a pattern leaves it out, a pattern with ``!`` lets it in.
        """
        return _matches(path, CREDENTIAL_PATTERNS) and self._decision(path) is None

    def _decision(self, path: str) -> bool | None:
        """What the last line that speaks of ``path`` says: leave it out, let it in, or nothing."""
        own = None
        if self._spec is not None and path.startswith(self.folder):
            own = self._spec.check_file(path.removeprefix(self.folder)).include
        return self.above._decision(path) if own is None and self.above is not None else own

    @cached_property
    def _spec(self) -> GitIgnoreSpec | None:
        if not self.lines:
            return None
        from pathspec import GitIgnoreSpec  # noqa: PLC0415 - its import costs more than a small pack

        return GitIgnoreSpec.from_lines(self.lines)

    def _checked(self, path: Path) -> IgnoreRules:
        """Build the patterns now, so that a wrong one is reported with the file it stands in."""
        try:
            _ = self._spec
        except ValueError as error:
            raise ArchiveError(
                f"{path}: holds a wrong pattern, got {error}; see gitignore's syntax"
            ) from error
        return self


def _read_lines(path: Path) -> tuple[str, ...]:
    try:
        if not path.is_file():  # reading a named pipe would wait for ever
            raise ArchiveError(f"{path}: must be a text file, got something else; remove or rename it")
        return tuple(path.read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError) as error:
        raise ArchiveError(f"{path}: cannot be read, got {error}; make it a UTF-8 text file") from error


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether the path or a folder it lies in bears a name like one of ``patterns``."""
    return any(map(_any_of(patterns).fullmatch, path.split("/")))


@cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(fnmatch.translate, patterns)))
