"""constructs-triton-client, the package of callers: its imports, exports and version."""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
from pathlib import Path

import pytest
from test_layers import imported_names

import constructs_triton_client

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "client" / "constructs_triton_client"
OTHER_PACKAGES = {"boto3", "botocore", "ml_dtypes", "numpy", "urllib3"}
# A module imports only from entries above its own entry.
LAYERS = (
    "visible_text",
    "errors",
    "spelling",
    "keywords",
    "datatypes",
    "bounded_json",
    "bounded_files",
    "wire",
    "model_index",
    "invocation_errors",
    "transports",
    "input_checks",
    "concurrency",
    "waking",
    "server_sent_events",
    "generated_events",
    "generation",
    "async_inference",
    "recorded_tensors",
    "recorded_requests",
    "triton_client",
)
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
PAGES = "\n".join(
    path.read_text()
    for folder, pattern in (("docs", "*.md"), ("examples", "*.py"), ("docs", "*.py"))
    for path in sorted((PROJECT / folder).rglob(pattern))
)


def _project(folder: Path) -> dict[str, object]:
    content: dict[str, dict[str, object]] = tomllib.loads((folder / "pyproject.toml").read_text())
    return content["project"]


def _layer(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def test_client_imports_numpy_and_the_packages_of_its_extras() -> None:
    """No module of the client imports constructs_triton, or another package than the client may require."""
    allowed = {"constructs_triton_client", *OTHER_PACKAGES, *sys.stdlib_module_names}
    roots = {str(path): {name.split(".")[0] for name in imported_names(path)} for path in MODULES}
    assert not {path: names - allowed for path, names in roots.items() if names - allowed}


def test_modules_of_the_client_import_only_from_layers_above() -> None:
    """Every module is in the list of layers, and none imports from a layer further down."""
    assert {_layer(path) for path in MODULES} == set(LAYERS)
    names = [(path, name.split(".")) for path in MODULES for name in imported_names(path)]
    upward = [
        f"{path.relative_to(PACKAGE)}: {'.'.join(parts)}"
        for path, parts in names
        if parts[0] == "constructs_triton_client" and len(parts) > 1
        if LAYERS.index(parts[1]) > LAYERS.index(_layer(path))
    ]
    assert not upward


def test_both_packages_have_one_version() -> None:
    """constructs-triton requires exactly the version of the client that is beside it."""
    client, project = _project(PROJECT / "client"), _project(PROJECT)
    assert client["version"] == project["version"]
    requirements = project["dependencies"]
    assert isinstance(requirements, list)
    assert f"constructs-triton-client=={client['version']}" in requirements


def test_client_requires_numpy_alone() -> None:
    """NumPy is the only requirement, and no version of Python is too new."""
    client = _project(PROJECT / "client")
    assert client["dependencies"] == ["numpy>=1.26"]
    assert client["requires-python"] == ">=3.11"


def test_extras_of_the_client_are_named_where_they_are_missing() -> None:
    """An extra that a message or a page names exists, and each extra is named by one."""
    sources = [*PACKAGE.rglob("*.py"), *(PROJECT / "constructs_triton").rglob("*.py")]
    text = PAGES + "".join(path.read_text() for path in sources)
    found = {
        name
        for names in re.findall(r"constructs-triton-client\[([\w,]+)\]", text)
        for name in names.split(",")
    }
    extras = _project(PROJECT / "client")["optional-dependencies"]
    assert isinstance(extras, dict)
    assert found == set(extras)


def test_client_has_the_license_of_the_project() -> None:
    """The client's source distribution cannot contain a file above its folder, so it has a copy."""
    assert (PROJECT / "client" / "LICENSE").read_text() == (PROJECT / "LICENSE").read_text()


@pytest.mark.parametrize(
    ("module", "limit"), [("constructs_triton_client", 19), ("constructs_triton_client.wire", 8)]
)
def test_exported_names_are_few_documented_and_used(module: str, limit: int) -> None:
    """Each exported name has a docstring and occurs in a page or an example, and no package exports many."""
    package = importlib.import_module(module)
    assert len(package.__all__) <= limit
    assert [name for name in package.__all__ if not getattr(package, name).__doc__] == []
    assert [name for name in package.__all__ if not re.search(rf"\b{name}\b", PAGES)] == []


def test_unknown_name_of_the_client_is_an_attribute_error() -> None:
    """An unknown name raises AttributeError with the name, and ``dir`` lists the public ones."""
    with pytest.raises(AttributeError, match="TritonClint"):
        constructs_triton_client.TritonClint  # noqa: B018 - a typo is the subject
    assert dir(constructs_triton_client) == constructs_triton_client.__all__
