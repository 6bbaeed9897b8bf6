"""What no member of a model archive may be: a link, a device, or a file outside its folder."""

from __future__ import annotations

from constructs_triton.model_repository.members import is_utf8
from constructs_triton.model_repository.tar_reader import ArchiveMember

__all__ = ["MemberChecks", "normalize"]

_MAX_NAME_BYTES, _MAX_PATH_BYTES = 255, 4000  # Linux's bounds, with room for the folder


def normalize(name: str) -> str:
    """Return a member's name without ``.``, double slashes and a slash at the end."""
    return "/".join(part for part in name.split("/") if part not in ("", "."))


class MemberChecks:
    """Checks members one by one, in the order of the archive."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def problem(self, member: ArchiveMember) -> str | None:
        """Return what is wrong with a member, with a fix, or ``None``."""
        name = normalize(member.name)
        return (
            self._name_problem(member, name)
            or self._type_problem(member)
            or self._place_problem(member, name)
        )

    def _name_problem(self, member: ArchiveMember, name: str) -> str | None:
        if "\0" in name:
            return "has a NUL in its name; rename it"
        if not is_utf8(name):
            return "has a name that is not UTF-8; rename it"
        if member.name.startswith("/") or ".." in member.name.split("/"):
            return "would be unpacked outside its folder; run tar inside the model repository"
        if len(name.encode()) > _MAX_PATH_BYTES or _longest_part(name) > _MAX_NAME_BYTES:
            return "has a name that is too long; shorten it"
        if not name and not member.is_directory:
            return "has no name; create the archive again"
        return None

    def _type_problem(self, member: ArchiveMember) -> str | None:
        if member.problem is None:
            return None
        return f"{member.problem}; archive only files and folders"

    def _place_problem(self, member: ArchiveMember, name: str) -> str | None:
        if name in self._files or (name in self._folders and not member.is_directory):
            return "occurs twice; create the archive again"
        parents = _parents(name)
        if not self._files.isdisjoint(parents):
            return "is below a file; create the archive again"
        self._folders.update(parents)
        (self._folders if member.is_directory else self._files).add(name)
        return None


def _longest_part(name: str) -> int:
    return max(len(part.encode()) for part in name.split("/"))


def _parents(name: str) -> list[str]:
    found = []
    end = name.find("/")
    while end >= 0:
        found.append(name[:end])
        end = name.find("/", end + 1)
    return found
