"""The walls: what each package imports, requires and exports."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version
from workspace import PACKAGES, PROJECT, imported_names, imports, project_of

from constructs_triton_core import OWN_PACKAGES

#: The folders with a ``pyproject.toml``. The wheel of the root has the functions and the tools too.
MEMBERS = [
    PROJECT,
    *(path.parent for path in sorted((PROJECT / "packages").glob("*/pyproject.toml"))),
]
#: What may import every package, inside functions: helpers of tests, and the completion of all
#: commands.
TOP_FLOOR = ("testing", "cli")
#: The packages without a wheel of their own, and the distribution in whose wheel they are.
DISTRIBUTIONS = {"constructs_triton_tools": "constructs-triton"}
#: Functions that import a package which only they need; their errors name the extra.
LATE = ("cdk/options/recorded_responses.py", "cdk/scaling/simulated_scaling.py")

#: One process reads the imports of all modules for these tests and those of the layers.
pytestmark = pytest.mark.xdist_group("imports")


@pytest.mark.parametrize("name", PACKAGES)
def test_package_imports_only_from_floors_below(name: str) -> None:
    """No module imports a package of this project that is not below it, not even in a function."""
    package = PACKAGES[name]
    foreign = set(PACKAGES) - {name, *package.floors}
    found = {
        str(path): _roots(path) & foreign
        for path in package.modules
        if not _is_top(path, package.root)
    }
    assert not {path: names for path, names in found.items() if names}


def test_top_floor_imports_other_packages_in_functions() -> None:
    """At the top of a module, testing and the table of commands import only
    what the constructs need.
    """
    package = PACKAGES["constructs_triton"]
    foreign = set(PACKAGES) - {package.name, *package.floors}
    tops = {str(path): _roots_at_the_top(path) & foreign for path in package.modules}
    assert not {path: names for path, names in tops.items() if names}


@pytest.mark.parametrize("name", PACKAGES)
def test_package_imports_only_what_it_requires(name: str) -> None:
    """No module imports another project than those that the package, or one
    of its extras, requires.
    """
    package = PACKAGES[name]
    known = {*PACKAGES, *package.others, *sys.stdlib_module_names}
    # Code of models, which runs in the server's Python, and what runs in the environment of an ONNX
    # Runtime.
    skipped = ("_metrics", "served", "code", "loading_process.py")
    found = {
        str(path): _roots(path) - known
        for path in package.modules
        if not {*skipped} & {*path.relative_to(package.root).parts}
    }
    assert not {path: names for path, names in found.items() if names}


def test_core_has_what_two_packages_need() -> None:
    """Each module or folder of the lowest package is used by two of the others."""
    users: dict[str, set[str]] = defaultdict(set)
    inner: dict[str, set[str]] = defaultdict(set)
    for package in PACKAGES.values():
        for path in (*package.modules, *package.stubs):
            for room in _rooms_of_core(path):
                if package.name == "constructs_triton_core":
                    inner[room].add(path.relative_to(package.root).parts[0].removesuffix(".py"))
                else:
                    users[room].add(package.name)
    for _ in PACKAGES:  # what only core uses counts for the users of its user
        for room, callers in inner.items():
            users[room] |= {name for caller in callers if caller != room for name in users[caller]}
    rooms = {
        path.name.removesuffix(".py") for path in PACKAGES["constructs_triton_core"].root.iterdir()
    }
    few = {room for room in rooms - {"__init__", "__pycache__", "py.typed"} if len(users[room]) < 2}
    assert not few


def _rooms_of_core(path: Path) -> Iterator[str]:
    names = (each.split(".") for each in imported_names(path))
    yield from (
        parts[1] for parts in names if parts[0] == "constructs_triton_core" and len(parts) > 1
    )


def _is_top(path: Path, root: Path) -> bool:
    relative = path.relative_to(root)
    return root.name == "constructs_triton" and (
        relative.parts[0] in TOP_FLOOR or relative.as_posix() in LATE
    )


def _roots(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imported_names(path)}


def _roots_at_the_top(path: Path) -> set[str]:
    """The projects of the imports outside functions and ``if TYPE_CHECKING``."""
    body = ast.parse(path.read_text()).body
    names = {alias.name for node in body if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in body if isinstance(node, ast.ImportFrom) and node.module}
    return {name.split(".")[0] for name in names}


def test_packages_are_those_of_the_project() -> None:
    """The code knows the packages by the names of their folders."""
    assert tuple(PACKAGES) == OWN_PACKAGES


def test_all_packages_have_one_version() -> None:
    """Every package has the same version, and requires exactly this version of the others."""
    versions = {str(folder): project_of(folder)["version"] for folder in MEMBERS}
    assert len(set(versions.values())) == 1, versions
    names = "|".join(project_of(folder)["name"] for folder in MEMBERS)
    own = re.compile(rf"({names})(\[[\w,]+\])?(==(?P<version>\S+))?")
    pins = {
        f"{folder}: {requirement}"
        for folder in MEMBERS
        for requirement in _requirements(folder)
        for match in [own.fullmatch(requirement)]
        if (match and match["version"] not in (None, project_of(folder)["version"]))
        or (match and match["version"] is None and not requirement.startswith("constructs-triton["))
    }
    assert not pins


def test_version_is_a_development_version_unless_the_tag_is_a_release() -> None:
    """Only the commit with the tag of a release has its version,
    so nothing else can be taken for it.
    """
    version = project_of(PROJECT)["version"]
    command = ("git", "tag", "--points-at", "HEAD")
    tags = subprocess.run(
        command, cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert Version(version).is_devrelease or f"v{version}" in tags


@pytest.mark.parametrize("name", [*PACKAGES])
def test_package_compares_its_version_first(name: str) -> None:
    """Each package has its version, and compares it with that of core before it imports anything of
    ours.

    The functions have none: they import no package, and are in the wheel of the tools, which
    compare theirs.
    """
    body = ast.parse((PACKAGES[name].root / "__init__.py").read_text()).body
    version = project_of(PROJECT)["version"]
    versions = {
        "constructs_triton_core": f"__version__ = {version!r}",
        "constructs_triton_functions": "",
    }
    distribution = DISTRIBUTIONS.get(name, name.replace("_", "-"))
    wanted = versions.get(name, f"__version__ = same_version({distribution!r}, {version!r})")
    lines = [ast.unparse(node) for node in body]
    (found,) = [line for line in lines if line.startswith("__version__")] or [""]
    assert found == wanted
    before = lines[: lines.index(found)] if found else []
    own = [line for line in before if any(each in line for each in PACKAGES) and "import" in line]
    assert all(line.startswith("from constructs_triton_core import ") for line in own[:1])
    assert len(own) <= 1


def _requirements(folder: Path) -> Iterator[str]:
    project = project_of(folder)
    yield from project["dependencies"]
    for extra in project.get("optional-dependencies", {}).values():
        yield from extra


@pytest.mark.parametrize("folder", MEMBERS, ids=lambda folder: folder.name)
def test_members_have_the_license_and_a_readme(folder: Path) -> None:
    """A source distribution cannot contain a file above its folder,
    so each has a copy of the license.
    """
    assert (folder / "LICENSE").read_text() == (PROJECT / "LICENSE").read_text()
    assert (folder / "README.md").read_text().startswith("# ")


def test_base_installation_has_no_numpy() -> None:
    """Neither the constructs nor the checker require NumPy, boto3 or the client."""
    required = {
        re.split(r"[^\w-]", each)[0]
        for folder in (PROJECT, PROJECT / "packages/check", PROJECT / "packages/core")
        for each in project_of(folder)["dependencies"]
    }
    assert not required & {"numpy", "boto3", "constructs-triton-client", "cdk-rehearse"}


def _imports_of_others() -> Iterator[tuple[Path, str, str]]:
    """Yield each module and name that a package imports from another one,
    with the importing file.
    """
    for package in PACKAGES.values():
        for path in (*package.modules, *package.stubs):
            for node in imports(path):
                if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    owner = PACKAGES.get(node.module.partition(".")[0])
                    if owner not in (None, package):
                        yield from ((path, node.module, alias.name) for alias in node.names)


@cache
def _file_of(module: str) -> Path | None:
    """Return the file of a module, or its stub, which lists the names of a
    package that imports late.
    """
    package, *inner = module.split(".")
    path = PACKAGES[package].root.joinpath(*inner)
    files = (path / "__init__.pyi", path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file.is_file()), None)


@cache
def _exported(file: Path) -> set[str]:
    """The names of a module's ``__all__``, or those that a stub imports for others."""
    body = ast.parse(file.read_text()).body
    if file.suffix == ".pyi":
        return {
            alias.name for node in body if isinstance(node, ast.ImportFrom) for alias in node.names
        }
    lists = (
        node.value
        for node in body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    return {name for each in lists if isinstance(each, ast.List) for name in ast.literal_eval(each)}


def _doors() -> dict[str, set[str]]:
    lists = {
        name: PROJECT / Path(each.source).parent / "public_modules.txt"
        for name, each in PACKAGES.items()
    }
    return {name: set(path.read_text().split()) for name, path in lists.items() if path.is_file()}


def test_other_packages_enter_through_the_doors() -> None:
    """A package imports of another only the modules in the other's ``public_modules.txt``,
    which are used.
    """
    used: dict[str, set[str]] = {name: set() for name in _doors()}
    for _, module, name in _imports_of_others():
        is_module = _file_of(f"{module}.{name}") is not None
        used[module.partition(".")[0]].add(f"{module}.{name}" if is_module else module)
    assert used == _doors()


def test_other_packages_import_only_exported_names() -> None:
    """Each name that a package imports of another is in ``__all__`` of its module."""
    missing = [
        f"{path.relative_to(PROJECT)}: {module}.{name}"
        for path, module, name in _imports_of_others()
        for file in [_file_of(module)]
        if file is not None and _file_of(f"{module}.{name}") is None and name not in _exported(file)
    ]
    assert not missing


def test_rehearsal_knows_the_registries_of_the_images() -> None:
    """cdk_rehearse, which does not import the checks,
    has the accounts of all images in their table.
    """
    images = _facts("triton_model_check", "facts/images.json")
    accounts = {*images["accounts"].values(), *images["legacy_accounts"].values()}
    assert _facts("cdk_rehearse", "aws_registries.json")["accounts"] == sorted(accounts)


def _facts(package: str, path: str) -> Any:
    return json.loads((PACKAGES[package].root / path).read_text())
