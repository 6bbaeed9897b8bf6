"""What no member of a model archive may be: a link, a device, or a file outside its folder."""

from __future__ import annotations

from triton_model_check.model_repository.members import is_utf8
from triton_model_check.untrusted.limits import MAX_DEPTH
from triton_model_check.untrusted.tar_reader import ArchiveMember

__all__ = ["MemberChecks", "normalize"]

_MAX_NAME_BYTES, _MAX_PATH_BYTES = 255, 4000  # Linux's bounds, with room for the folder
_MAX_FOLDERS = 200_000


def normalize(name: str) -> str:
    """Return a member's name without ``.``, double slashes and a slash at the end."""
    return "/".join(part for part in name.split("/") if part not in ("", "."))


_Place = tuple[int, str]
"""The number of the folder that contains it, and its name."""


class MemberChecks:
    """Checks members one by one, in the order of the archive."""

    def __init__(self) -> None:
        self._files: set[_Place] = set()
        self._folders: dict[_Place, int] = {}

    def problem(self, member: ArchiveMember) -> str | None:
        """Return what is wrong with a member, with a fix, or ``None``."""
        name = normalize(member.name)
        return (
            self._name_problem(member, name)
            or self._type_problem(member)
            or self._place_problem(member, name)
        )

    def _name_problem(self, member: ArchiveMember, name: str) -> str | None:
        """Return what is wrong with the name of a member."""
        if "\0" in name:
            return "has a NUL in its name; rename it"
        if not is_utf8(name):
            return "has a name that is not UTF-8; rename it"
        if member.name.startswith("/") or ".." in member.name.split("/"):
            return "would be unpacked outside its folder; run tar inside the model repository"
        longest = max(len(part.encode()) for part in name.split("/"))
        if len(name.encode()) > _MAX_PATH_BYTES or longest > _MAX_NAME_BYTES:
            return "has a name that is too long; shorten it"
        if not name and not member.is_directory:
            return "has no name; create the archive again"
        return None

    def _type_problem(self, member: ArchiveMember) -> str | None:
        if member.problem is None:
            return None
        return f"{member.problem}; archive only files and folders"

    def _place_problem(self, member: ArchiveMember, name: str) -> str | None:
        """Return what is wrong with the place of a member among the others."""
        parts = name.split("/")
        if len(parts) > MAX_DEPTH:
            return f"is in more than {MAX_DEPTH} folders; move it up"
        if len(self._folders) > _MAX_FOLDERS:
            return f"follows {_MAX_FOLDERS} folders; put the files into fewer folders"
        parent = 0
        for part in parts[:-1]:
            if (parent, part) in self._files:
                return "is below a file; create the archive again"
            parent = self._folder((parent, part))
        place = parent, parts[-1]
        if place in self._files or (place in self._folders and not member.is_directory):
            return "occurs twice; create the archive again"
        if member.is_directory:
            self._folder(place)
        else:
            self._files.add(place)
        return None

    def _folder(self, place: _Place) -> int:
        """Return the number of a folder.

        Numbers take less memory than the paths of deep folders.
        """
        return self._folders.setdefault(place, len(self._folders) + 1)
