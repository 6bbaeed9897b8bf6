"""Write the comments of Triton's ``model_config.proto`` to the facts of the checker.

    python dev/schema_comments.py model_config.proto

The file is ``protobuf/model_config.proto`` of github triton-inference-server/common, of the branch
of the schema in ``model_config.binpb``, whose descriptor has no comments. A field or a value that
is in only one of the two is printed. The editor shows the comments.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from google.protobuf import descriptor_pb2

SCHEMA = (
    Path(__file__).resolve().parent.parent
    / "packages/check/src/triton_model_check/model_config/model_config.binpb"
)
COMMENTS = SCHEMA.with_name("model_config_comments.json")

_BLOCK = re.compile(r"(message|enum|oneof)\s+(\w+)")
_FIELD = re.compile(r"(?:(?:repeated|optional)\s+)?(?:map\s*<[^>]*>|[\w.]+)\s+(\w+)\s*=\s*\d+")
_VALUE = re.compile(r"(\w+)\s*=\s*\d+\s*;")
_DIRECTIVE = re.compile(r"\s*\.\. cpp:")


def comments_of(proto: str) -> dict[str, str]:
    """Return the comment of each message, field, enum and value that has one, by its name.

    The name is as protobuf writes it, without the package: ``ModelWarmup.Input.data_type``. What is
    in a ``oneof`` has the name of its message before it.
    """
    found: dict[str, str] = {}
    blocks: list[tuple[str, str]] = []
    lines: list[str] = []
    for line in proto.splitlines():
        code = line.strip()
        if code.startswith("//"):
            lines.append(code.removeprefix("//").removeprefix("@@"))
            continue

        opened = _BLOCK.match(code)
        is_value = bool(blocks) and blocks[-1][0] == "enum"
        named = opened or (_VALUE if is_value else _FIELD).match(code)
        if named:
            name = named[2] if opened else named[1]
            above = [block for kind, block in blocks if kind != "oneof"]
            text = _plain(lines)
            if text and not (opened and opened[1] == "oneof"):
                found[".".join((*above, name))] = text
        lines = []
        if opened:
            blocks.append((opened[1], opened[2]))
        if code.startswith("}") or code.endswith("}"):
            blocks.pop()
    return found


def _plain(lines: list[str]) -> str:
    """Return a comment as paragraphs, without the directives of the documentation's generator."""
    kept = [line for line in lines if not _DIRECTIVE.match(line)]
    text = textwrap.dedent("\n".join(line.rstrip() for line in kept)).strip()
    return re.sub(r"\n{3,}", "\n\n", text)


def _names(
    messages: list[descriptor_pb2.DescriptorProto],
    enums: list[descriptor_pb2.EnumDescriptorProto],
    above: str = "",
) -> Iterator[str]:
    """Yield the names of all messages, fields, enums and values; entries of maps are left out."""
    for enum in enums:
        yield f"{above}{enum.name}"
        for value in enum.value:
            yield f"{above}{enum.name}.{value.name}"
    for message in messages:
        if message.options.map_entry:
            continue
        name = f"{above}{message.name}"
        yield name
        for field in message.field:
            yield f"{name}.{field.name}"
        yield from _names(list(message.nested_type), list(message.enum_type), f"{name}.")


def main() -> None:
    """Write the comments, and print the names that only one of the two has."""
    proto = Path(sys.argv[1]).read_text("utf-8")
    found = comments_of(proto)
    schema = descriptor_pb2.FileDescriptorProto.FromString(SCHEMA.read_bytes())
    names = list(_names(list(schema.message_type), list(schema.enum_type)))
    for name in sorted(found.keys() - set(names)):
        print(f"not in the schema: {name}")
    for name in names:
        if name not in found:
            print(f"no comment: {name}")

    ordered = {name: found[name] for name in names if name in found}
    COMMENTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
