"""Only one room of the rehearsal knows moto."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from workspace import PACKAGES, imported_names

REHEARSE = PACKAGES["cdk_rehearse"]
ROOM = REHEARSE.root / "moto_account"
ABOVE = [path for path in REHEARSE.modules if not path.is_relative_to(ROOM)]


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _knowledge(module: ast.Module) -> Iterator[str]:
    """Yield each import of moto, and each string that names a module of it for a patch."""
    for node in ast.walk(module):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names if _is_of_moto(each.name))
            case ast.ImportFrom(module=str(name), level=0) if _is_of_moto(name):
                yield name
            case ast.Constant(value=str(text)) if text.startswith("moto."):
                yield text


def _is_of_moto(name: str) -> bool:
    return name.partition(".")[0] == "moto"


def _own_names() -> set[str]:
    """The private names that the rehearsal itself defines."""
    found = set()
    for path in ABOVE:
        for node in ast.walk(_parsed(path)):
            match node:
                case ast.FunctionDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                    found.add(name)
                case ast.Attribute(attr=name, ctx=ast.Store(), value=ast.Name(id="self")):
                    found.add(name)
    return found


def _foreign_members(module: ast.Module, own: set[str]) -> Iterator[str]:
    """Yield the private attributes of objects whose class is not one of the rehearsal."""
    for node in ast.walk(module):
        match node:
            case ast.Attribute(attr=name, value=value) if _is_private(name) and name not in own:
                yield f"{ast.unparse(value)}.{name}"


def _is_private(name: str) -> bool:
    is_of_named_tuples = name in ("_asdict", "_fields", "_replace")
    return name.startswith("_") and not name.startswith("__") and not is_of_named_tuples


@pytest.mark.parametrize(
    "path", ABOVE, ids=[str(path.relative_to(REHEARSE.root)) for path in ABOVE]
)
def test_no_module_above_the_room_imports_or_patches_moto(path: Path) -> None:
    """Outside of the room no module of the rehearsal imports moto or names a part of it."""
    assert list(_knowledge(_parsed(path))) == []


def test_each_replaced_member_is_declared() -> None:
    """Only the class of the declarations replaces members, so the table has all of them."""
    patching = [
        str(path.relative_to(REHEARSE.root))
        for path in REHEARSE.modules
        if "unittest" in {name.partition(".")[0] for name in imported_names(path)}
    ]
    assert patching == ["moto_account/differences.py"]


def test_no_module_above_the_room_uses_private_members_of_moto() -> None:
    """Outside of the room a private attribute is one that the rehearsal itself defines."""
    own = _own_names()
    found = [
        f"{path.relative_to(REHEARSE.root)}: {member}"
        for path in ABOVE
        for member in _foreign_members(_parsed(path), own)
    ]
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        "import moto.sagemaker",
        "from moto import mock_aws",
        'patch("moto.sagemaker.models.FakeEndpoint")',
    ],
)
def test_knowledge_of_moto_is_found(code: str) -> None:
    """An import of moto and the name of a part of it are found."""
    assert list(_knowledge(ast.parse(code))) != []


def test_private_members_of_moto_are_found() -> None:
    """A private attribute that the rehearsal does not define is found."""
    module = ast.parse('api.backend("sagemaker")._models')
    assert list(_foreign_members(module, set())) == ["api.backend('sagemaker')._models"]
