"""Writes the API reference from the signatures and docstrings of the public names."""

from __future__ import annotations

import enum
import importlib
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import constructs_triton
from documentation.call_examples import example_of
from documentation.definitions import definitions
from documentation.docstrings import Docstring, read_docstring
from documentation.members import Row, hidden_bases, members_of, nested_classes, rows_of, type_of
from documentation.returned_types import ReturnedType, returned_types

#: Pages of the names that are imported from the top package: title, and the packages that define
#: them.
TOP_PAGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "endpoints": (
        "Endpoint constructs",
        ("constructs_triton.cdk.endpoint", "constructs_triton.cdk.model"),
    ),
    "components": ("Inference components", ("constructs_triton.cdk.inference_component",)),
    "repositories": ("Model repository constructs", ("constructs_triton.cdk.repository",)),
    "options": (
        "Options of endpoints and variants",
        ("constructs_triton.cdk.options", "constructs_triton.cdk.metrics"),
    ),
    "scaling": ("Scaling", ("constructs_triton.cdk.scaling",)),
    "monitoring": ("Alarms and dashboards", ("constructs_triton.cdk.monitoring",)),
    "facts": (
        "Instance types and host images",
        ("constructs_triton_core.facts", "triton_model_check.facts"),
    ),
}
#: Pages of the modules that have names of their own.
PACKAGES: Mapping[str, str] = {
    "cdk": "constructs_triton.cdk",
    "testing": "constructs_triton.testing",
    "check": "triton_model_check",
    "model_config": "triton_model_check.model_config",
    "model_files": "triton_model_check.model_files",
    "model_repository": "triton_model_check.model_repository",
    "client": "constructs_triton_client",
    "wire": "constructs_triton_client.wire",
    "local": "constructs_triton_tools.local",
    "operations": "constructs_triton_tools.operations",
    "planning": "constructs_triton_tools.planning",
    "plots": "constructs_triton_tools.measuring.plots",
    "tuning": "constructs_triton_tools.measuring.tuning",
    "rehearsal": "cdk_rehearse",
    "errors": "constructs_triton_core.errors",
}
NAMES_HEAD = """# API

The public names, by the page of the site that describes them. `make docs` builds the site in
`build/site`. In Python, `help(constructs_triton.TritonEndpoint)` prints the same descriptions.
"""
#: Public names that are more often the name of a parameter of AWS's API.
PARAMETERS = {"TargetModel"}
_CODE = re.compile(r"(?<!\[)`(?P<name>[A-Z]\w+)(?P<member>\.\w+)?(?:\(\))?`(?!\])")


def write_api(folder: Path) -> None:
    """Write one page for each part of the public interface."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = dict(_pages())
    returned = {page: _returned(source, names) for page, (_, source, names) in pages.items()}
    places = {name: page for page, types in returned.items() for name in types}
    places |= {name: page for page, (_, _, names) in pages.items() for name in names}
    for page, (title, source, names) in pages.items():
        text = "\n".join((*_page(title, source, names), *_returned_sections(returned[page])))
        (folder / f"{page}.md").write_text(_linked(text, page, places), encoding="utf-8")
    (folder / "index.md").write_text(_index(pages), encoding="utf-8")


def _pages() -> Iterator[tuple[str, tuple[str, str, dict[str, Any]]]]:
    """Yield each page's name, title, package and public names."""
    top = {name: getattr(constructs_triton, name) for name in sorted(constructs_triton.__all__)}
    for page, (title, prefixes) in TOP_PAGES.items():
        names = {
            name: value for name, value in top.items() if value.__module__.startswith(prefixes)
        }
        yield page, (title, "constructs_triton", names)
    for page, source in PACKAGES.items():
        yield page, (source, source, _own_names(source))


def _returned(source: str, names: Mapping[str, Any]) -> dict[str, ReturnedType]:
    """Return the types that the names return, unless a page has them already."""
    package = "constructs_triton.cdk" if source == "constructs_triton" else source
    return returned_types(
        names, package, {name for _, (_, _, public) in _pages() for name in public}
    )


def _own_names(source: str) -> dict[str, Any]:
    """Return the public names of a module."""
    module = importlib.import_module(source)
    return {name: getattr(module, name) for name in sorted(module.__all__)}


def _index(pages: Mapping[str, tuple[str, str, dict[str, Any]]]) -> str:
    lines = ["# API", "", "| page | import from | names |", "|---|---|---|"]
    for page, (title, source, names) in pages.items():
        links = ", ".join(f"[`{name}`]({page}.md#{name})" for name in names)
        lines.append(f"| [{title}]({page}.md) | `{source}` | {links} |")
    return "\n".join(lines) + "\n"


def write_names(path: Path) -> None:
    """Write the page of ``docs/`` that lists every public name;
    the site has a page for each part instead.
    """
    parts = [NAMES_HEAD]
    for page, (title, source, names) in _pages():
        listed = ", ".join(f"`{name}`" for name in names)
        heading = f"{title}. Import from" if source == "constructs_triton" else "Import from"
        parts.append(f"## {page}\n\n{heading} `{source}`: {listed}\n")
    path.write_text("\n".join(parts), encoding="utf-8")


def _page(title: str, source: str, names: Mapping[str, Any]) -> Iterator[str]:
    yield f"# {title}\n"
    yield "[All names](index.md)\n"
    if source != "constructs_triton":
        yield f"{read_docstring(importlib.import_module(source)).text}\n"
    bases: dict[type, list[str]] = {}
    for name, value in names.items():
        yield from _section(name, value, source, names)
        for base in hidden_bases(value) if inspect.isclass(value) else ():
            if base not in names.values():
                bases.setdefault(base, []).append(name)
    for owners in dict.fromkeys(map(tuple, bases.values())):
        yield f"## Members of {_joined(owners)}\n"
        for base in (each for each, found in bases.items() if tuple(found) == owners):
            yield from _members(owners[0], base, with_abstract=False)


def _returned_sections(types: Mapping[str, ReturnedType]) -> Iterator[str]:
    for name, found in types.items():
        yield f"## {name} {{ #{name} }}\n"
        yield f"{found.origin}\n"
        if found.fields:
            yield from _documented(found.value, {})
        else:
            yield f"{read_docstring(found.value).text}\n"
        yield from _members(name, found.value)


def _section(name: str, value: Any, source: str, names: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {name} {{ #{name} }}\n"
    yield f"```python\nfrom {source} import {name}\n```\n"
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        yield (
            f"`{value!r}`\n"
            if isinstance(value, str | int | float)
            else f"{read_docstring(value).text}\n"
        )
        return
    yield from _documented(value, names)
    if inspect.isclass(value):
        yield example_of(name) if source == "constructs_triton" else ""
        yield from _members(name, value)
        for nested_name, nested in nested_classes(value):
            yield f"### {nested_name} {{ #{nested_name} }}\n"
            yield from _documented(nested, {})


def _documented(value: Any, names: Mapping[str, Any], owner: type | None = None) -> Iterator[str]:
    """Yield the text, the list of parameters and the errors of a class, a function or a method."""
    docstring = read_docstring(value, owner)
    yield f"{docstring.text}\n"
    rows, options = _own_rows(value, docstring, names)
    if options and options not in docstring.text:
        yield f"It also takes the properties of `{options}`.\n"
    if isinstance(value, enum.EnumType):
        names_of_values = [f"- `{each.name}`: `{each.value!r}`" for each in list[enum.Enum](value)]
        yield "\n".join(names_of_values) + "\n"
    yield from definitions(rows)
    if docstring.errors:
        yield (
            "\n".join(["Raises:\n", *(f"- `{error}`: {why}" for error, why in docstring.errors)])
            + "\n"
        )


def _own_rows(value: Any, docstring: Docstring, names: Mapping[str, Any]) -> tuple[list[Row], str]:
    """Return the rows, and the options that the value also takes, whose rows are left out."""
    rows = rows_of(value, docstring)
    for options in ("EndpointOptions", "VariantOptions"):
        declared = (
            {row.name for row in rows_of(names[options], docstring)} if options in names else set()
        )
        if declared and value is not names[options] and declared <= {row.name for row in rows}:
            return [row for row in rows if row.name not in declared], options
    return rows, ""


def undocumented() -> Iterator[str]:
    """Yield the parameters that have no meaning, such as ``wire: encode_request(inputs)``."""
    for page, (_, source, names) in _pages():
        returned = _returned(source, names)
        for name, value in (
            *names.items(),
            *((name, found.value) for name, found in returned.items()),
        ):
            for label, part, owner in _parts(name, value):
                if part is value and name in returned and not returned[name].fields:
                    continue
                rows, _ = _own_rows(part, read_docstring(part, owner), {} if owner else names)
                yield from (f"{page}: {label}({row.name})" for row in rows if not row.meaning)


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any, type | None]]:
    """Yield what has parameters: the class or the function, the classes inside it,
    and its methods.
    """
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return
    yield name, value, None
    if inspect.isclass(value):
        yield from ((each, nested, None) for each, nested in nested_classes(value))
        for owner in (value, *hidden_bases(value)):
            for each, member in members_of(owner, with_abstract=owner is value):
                if not isinstance(member, property):
                    yield f"{owner.__name__}.{each}", _bound(owner, each, member), owner


def _members(name: str, value: type, *, with_abstract: bool = True) -> Iterator[str]:
    members = list(members_of(value, with_abstract=with_abstract))
    properties = [(each, member) for each, member in members if isinstance(member, property)]
    if properties:
        yield "Attributes:\n"
        yield from definitions([_attribute(each, member) for each, member in properties])
    for each, member in members:
        if not isinstance(member, property):
            yield from _method(name, each, value, member)


def _attribute(name: str, member: property) -> Row:
    returns = inspect.signature(member.fget).return_annotation if member.fget else ""
    return Row(name, type_of(returns), "", " ".join(read_docstring(member).text.split()))


def _method(owner: str, name: str, value: type, member: Any) -> Iterator[str]:
    yield f"### {name}() {{ #{owner}.{name} }}\n"
    yield from _documented(_bound(value, name, member), {}, value)


def _bound(value: type, name: str, member: Any) -> Any:
    """Return a class method or static method without its first parameter."""
    return getattr(value, name) if isinstance(member, classmethod | staticmethod) else member


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _linked(text: str, page: str, places: Mapping[str, str]) -> str:
    """Link the public names of the text to their sections."""
    return "".join(_linked_lines(text.splitlines(keepends=True), page, places))


def _linked_lines(lines: Iterable[str], page: str, places: Mapping[str, str]) -> Iterator[str]:
    def link(found: re.Match[str]) -> str:
        place = places.get(found["name"])
        if place is None or found["name"] in PARAMETERS:
            return found[0]
        file = "" if place == page else f"{place}.md"
        return f"[{found[0]}]({file}#{found['name']})"

    is_code = False
    for line in lines:
        is_code ^= line.startswith("```")
        yield line if is_code or line.startswith("#") else _CODE.sub(link, line)
