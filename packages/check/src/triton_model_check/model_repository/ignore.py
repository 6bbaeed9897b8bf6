"""Decides what is left out of a model archive, and what must not be in one.

The rules have the syntax of gitignore (package ``pathspec``). They are read from ``.tritonignore``
files at the repository's root and in the folders below it. A file applies to its own folder and
takes precedence over files above it. Every line takes precedence over the defaults: ``!name`` keeps
a file that is left out by default.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Container
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from constructs_triton_core.errors import ArchiveError
from constructs_triton_core.untrusted.regular_files import read_regular
from triton_model_check.untrusted.ignore_patterns import compile_patterns

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

__all__ = ["IGNORE_FILE", "IgnoreRules", "LeftOut"]

IGNORE_FILE = ".tritonignore"
_MAX_BYTES = 16 << 10

DEFAULT_PATTERNS = (
    *(".git", ".gitignore", ".gitattributes", ".hg", ".svn", IGNORE_FILE),
    *("__pycache__", ".ipynb_checkpoints", ".mypy_cache", ".pytest_cache", ".ruff_cache"),
    *(".idea", ".vscode", ".DS_Store", "._*", "Thumbs.db", "desktop.ini", "*~", "*.swp"),
)

CREDENTIAL_PATTERNS = (
    *(".env", ".env.*", ".aws", ".azure", ".ssh", ".gnupg", ".kube", ".docker", ".netrc", "_netrc"),
    *(
        ".npmrc",
        ".pgpass",
        ".pypirc",
        ".git-credentials",
        ".boto",
        "*.pem",
        "*.key",
        "*.p12",
        "*.pfx",
    ),
    *("*.jks", "*.kdbx", "*.keystore", "*.ppk", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"),
    *("credentials", "credentials.json", "client_secret*.json", "service-account*.json"),
    "service_account*.json",
)


@dataclass(frozen=True)
class IgnoreRules:
    """The rules that apply in one folder of a repository.

    ``lines`` are those of the nearest ``.tritonignore``. ``folder`` is its folder relative to the
    repository, ending in ``/``, or ``""`` for the root. ``above`` are the rules of the folders
    above.
    """

    lines: tuple[str, ...] = ()
    folder: str = ""
    above: IgnoreRules | None = None

    @classmethod
    def from_directory(cls, repository: Path) -> IgnoreRules:
        """Return the rules at a repository's root; without a ``.tritonignore``, only the defaults.

        Raises:
            ArchiveError: the file cannot be read, or contains a pattern that is not valid.
        """
        path = repository / IGNORE_FILE
        return cls(_read_lines(path))._checked(path) if os.path.lexists(path) else cls()

    def below(self, path: Path, folder: str) -> IgnoreRules:
        """Return the rules in ``folder`` of the repository, whose ``.tritonignore`` is ``path``.

        Raises:
            ArchiveError: as for :meth:`from_directory`.
        """
        return IgnoreRules(_read_lines(path), f"{folder}/", self)._checked(path)

    def leaves_out(self, path: str, beside: Container[str] = ()) -> bool:
        """Whether ``path`` is left out. It is relative to the repository; a folder's path ends in
        ``/``.

        ``beside`` are the names in its folder: bytecode is left out if its source is packed,
        because Python then never reads it.
        """
        decision = self._decision(path)
        if decision is not None:
            return decision
        source = path.removesuffix("c")
        is_bytecode = path.endswith(".pyc") and source.rpartition("/")[2] in beside
        return _matches(path, DEFAULT_PATTERNS) or (is_bytecode and not self.leaves_out(source))

    def refuses(self, path: str) -> bool:
        """Whether ``path`` looks like a credential and no line of a ``.tritonignore`` matches it.

        A line that matches it decides: a pattern leaves it out, a pattern with ``!`` includes it.
        """
        return _matches(path, CREDENTIAL_PATTERNS) and self._decision(path) is None

    def _decision(self, path: str) -> bool | None:
        """What the last line that matches ``path`` says: leave out, include,
        or nothing (``None``).
        """
        own = None
        if self._spec is not None and path.startswith(self.folder):
            own = self._spec.check_file(path.removeprefix(self.folder)).include
        return self.above._decision(path) if own is None and self.above is not None else own

    @cached_property
    def _spec(self) -> GitIgnoreSpec | None:
        return compile_patterns(self.lines) if self.lines else None

    def _checked(self, path: Path) -> IgnoreRules:
        """Compile the patterns now, so that an invalid one is reported with its file."""
        try:
            _ = self._spec
        except ValueError as error:
            raise ArchiveError(
                f"{path}: contains an invalid pattern ({error}); "
                "correct it, in the syntax of .gitignore"
            ) from error
        return self


class LeftOut:
    """Answers for single paths of a repository whether packing leaves them out.

    An invalid ``.tritonignore`` counts as empty; packing reports it.
    """

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        self._rules: dict[str, IgnoreRules] = {}

    def __call__(self, path: str) -> bool:
        """Whether ``path`` in a model's folder, or a folder above it, is left out;
        a folder ends in ``/``.
        """
        parent, _, name = path.rstrip("/").rpartition("/")
        if "/" in parent and self(f"{parent}/"):
            return True
        has_source = name.endswith(".pyc") and (self._repository / parent / name[:-1]).is_file()
        return self._within(parent).leaves_out(path, (name[:-1],) if has_source else ())

    def _within(self, folder: str) -> IgnoreRules:
        if folder not in self._rules:
            above = self._within(folder.rpartition("/")[0]) if folder else IgnoreRules()
            try:
                self._rules[folder] = self._read(folder, above)
            except ArchiveError:
                self._rules[folder] = above
        return self._rules[folder]

    def _read(self, folder: str, above: IgnoreRules) -> IgnoreRules:
        if not folder:
            return IgnoreRules.from_directory(self._repository)
        own = f"{self._repository}/{folder}/{IGNORE_FILE}"
        return above.below(Path(own), folder) if os.path.lexists(own) else above


def _read_lines(path: Path) -> tuple[str, ...]:
    try:
        return tuple(read_regular(path, _MAX_BYTES).decode("utf-8").splitlines())
    except (OSError, UnicodeDecodeError) as error:
        raise ArchiveError(
            f"{path}: cannot be read ({error}); save it as a UTF-8 text file"
        ) from error


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether the name of the file, or of a folder above it, matches one of ``patterns``."""
    return any(map(_any_of(patterns).fullmatch, path.split("/")))


@cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(fnmatch.translate, patterns)))
