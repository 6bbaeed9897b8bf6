"""Examples of the checks of all files of a repository."""

from __future__ import annotations

from check_examples.repositories import CLASS, HEAD, Example, one
from triton_model_check.model_config.target import Target

POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)


def _crlf(text: str) -> bytes:
    return text.replace("\n", "\r\n").encode()


EXAMPLES: dict[str, Example] = {
    "file-git-lfs-pointer": Example(
        one(HEAD, **{"m/1/weights.npz": POINTER}), one(HEAD, **{"m/1/weights.npz": b"PK\3\4"})
    ),
    "file-line-endings": Example(
        {"m/config.pbtxt": _crlf(HEAD), "m/1/model.py": _crlf(CLASS)},
        {"m/config.pbtxt": HEAD.encode(), "m/1/model.py": CLASS.encode()},
        Target(default_model="m"),
    ),
    "file-names-collide": Example(
        one(HEAD, **{"m/1/Labels.txt": "a\n", "m/1/labels.txt": "b\n"}),
        one(HEAD, **{"m/1/labels.txt": "b\n", "m/1/old_labels.txt": "a\n"}),
    ),
    "file-names-collide: models": Example(
        {**one(HEAD), "M/config.pbtxt": HEAD, "M/1/model.py": CLASS},
        {**one(HEAD), "n/config.pbtxt": HEAD, "n/1/model.py": CLASS},
    ),
    "file-name-form": Example(
        one(HEAD, **{"m/1/e\u0301.txt": "x"}), one(HEAD, **{"m/1/\u00e9.txt": "x"})
    ),
}
