"""Names the user's own files in messages of a container, which names those in its own folders."""

from __future__ import annotations

import re
from dataclasses import dataclass

from constructs_triton_tools.local.gateway.inference_components import LocalVariant

_FRAME = re.compile(r"^\s+(?P<file>\S+)\((?P<line>\d+)\): \S+$")


@dataclass(frozen=True, slots=True)
class UserFiles:
    """Where the files of a container are from.

    Args:
        folders: Pattern of the container's folders of models, as messages name them.
        source: Beginning of the user's own paths: the folder of models; empty if only archives are
            known.
    """

    folders: re.Pattern[str]
    source: str

    @classmethod
    def of(cls, running: LocalVariant) -> UserFiles:
        """Return the files of a variant or component."""
        models = running.server.models_directory
        roots = "|".join(map(re.escape, ("/opt/ml", str(models.parent))))
        folder = r"models/[0-9A-Za-z._]+/model/" if running.multi_model is not None else "model/"
        source = running.server.container.source
        return cls(
            re.compile(rf"(?:{roots})/{folder}(?=\S)"), "" if source is None else f"{source}/"
        )

    def name(self, text: str) -> str:
        """Return a text with the user's own paths.

        Frames of a traceback that are in other files are left out, if one is in a file of the user.
        """
        lines = text.split("\n")
        frames = [line for line in lines if _FRAME.match(line)]
        if any(map(self.folders.search, frames)):
            lines = [line for line in lines if line not in frames or self.folders.search(line)]
        return self.folders.sub(lambda _: self.source, "\n".join(lines))

    def place(self, text: str) -> str:
        """Return the innermost line of the user's code in a traceback; empty if there is none."""
        for line in text.split("\n"):
            frame = _FRAME.match(line)
            if frame is not None and self.folders.match(frame["file"]):
                return f"{self.name(frame['file'])}, line {frame['line']}"
        return ""
