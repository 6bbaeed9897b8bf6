"""Files are written by one module, or in folders in which no other user can have put a name."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

import pytest
from workspace import PACKAGES, PROJECT

ROOM = PACKAGES["constructs_triton_core"].root / "untrusted" / "written_files.py"
MODULES = {
    path.relative_to(PROJECT).as_posix(): path
    for package in PACKAGES.values()
    for path in package.modules
    if path != ROOM
}

OWN_FOLDER = "it fills a temporary folder that it has created with a random name and mode 0700"
DRAFT = "it renames out of such a folder; what is renamed over a link replaces the link"
CACHE = "it works in a cache, which only this user can write"
PREPARED = "it changes copies of models in the temporary folder of a local run"
NO_FILE = "it opens no file by a name of others"

#: Why a module may write by itself; the paths without the folders that all of a package have.
REASONS: Mapping[str, str] = {
    "check/artifacts/environments/placement.py": f"{OWN_FOLDER}; configurations are deleted first",
    "check/artifacts/mirror.py": f"{OWN_FOLDER}: links to files of the user",
    "check/artifacts/shared_files.py": f"{OWN_FOLDER}: links to files of the user",
    "check/checks/side_by_side.py": f"{NO_FILE}: a pipe to this process",
    "check/cli/copied_repository.py": f"{OWN_FOLDER}: the copy in which --diff tries fixes",
    "check/editor/command.py": f"{NO_FILE}: its own standard output",
    "check/model/ruff_parser.py": OWN_FOLDER,
    "check/model_repository/archive_cache.py": f"{DRAFT}; {CACHE}",
    "check/model_repository/archive_inspection.py": "it creates a file exclusively",
    "check/model_repository/archive_outline.py": f"{DRAFT}; {CACHE}",
    "check/model_repository/builder.py": f"{OWN_FOLDER}; {DRAFT}",
    "check/model_repository/digest_cache.py": f"{CACHE}; SQLite opens its files itself",
    "check/model_repository/new_model.py": f"{OWN_FOLDER}; {DRAFT}",
    "check/model_repository/packing.py": f"{OWN_FOLDER}; {DRAFT}",
    "check/model_repository/uncompressed/copying.py": "it creates a file exclusively",
    "check/onnx_runtimes/fetching.py": f"{DRAFT}; {CACHE}",
    "client/recorded_tensors.py": f"{NO_FILE}: NumPy gets an open one",
    "core/untrusted/drafts.py": "it creates what written_files writes, exclusively; "
    "and moves a folder out of such a folder",
    "core/processes/bounded_server.py": f"{NO_FILE}: its own standard output",
    "core/program/bug_report.py": "mkstemp creates a new file in the folder of temporary files",
    "core/program/program.py": f"{NO_FILE}: /dev/null",
    "rehearse/custom_resources/functions.py": OWN_FOLDER,
    "rehearse/function_process.py": f"{OWN_FOLDER}: the log of an invocation",
    "rehearse/providers/functions.py": f"{NO_FILE}: an archive in memory",
    "rehearse/stacks/publishing.py": f"{NO_FILE}: an archive in memory",
    "tools/building/environments/archive.py": f"{OWN_FOLDER}, after links were refused; {DRAFT}",
    "tools/building/environments/cache_writing.py": f"{DRAFT}; {CACHE}",
    "tools/building/environments/uv.py": OWN_FOLDER,
    "tools/building/plans/compiling.py": OWN_FOLDER,
    "tools/building/plans/job_bucket.py": OWN_FOLDER,
    "tools/building/plans/plan_files.py": f"{OWN_FOLDER}; {DRAFT}",
    "tools/cli/compile/preparation.py": OWN_FOLDER,
    "tools/local/checked_models.py": OWN_FOLDER,
    "tools/local/containers/container.py": f"{OWN_FOLDER}: the log of a container",
    "tools/local/gateway/bucket_api.py": "it writes files with random names in the bucket folder",
    "tools/local/gateway/bucket_folder.py": (
        "it writes files with random names; a key is followed only inside of its bucket"
    ),
    "tools/local/gateway/multi_model.py": f"{PREPARED}: links to archives",
    "tools/local/server/cached_server.py": f"{DRAFT}; {CACHE}",
    "tools/local/server/installation.py": f"{OWN_FOLDER}: links to backends",
    "tools/local/server/local_model.py": PREPARED,
    "tools/local/server/namespaces.py": f"{OWN_FOLDER}; and files of /proc/self",
    "tools/local/server/supervisor.py": f"{OWN_FOLDER}: the log of a server",
    "tools/local/server/unpacking.py": f"{OWN_FOLDER}; {DRAFT}",
    "tools/local/sources/deployed.py": f"{OWN_FOLDER}: downloads",
    "tools/local/stand_ins/replaced_models.py": PREPARED,
    "tools/local/stand_ins/stand_ins.py": f"{OWN_FOLDER}: backends",
    "tools/measuring/plots/figure.py": f"{NO_FILE}: a picture in memory",
    "tools/measuring/tuning/repositories.py": f"{OWN_FOLDER}; configurations are deleted first",
    "tools/operations/adopting/adopt.py": f"{OWN_FOLDER}; it moves a complete app out of it",
    "tools/operations/adopting/models.py": OWN_FOLDER,
    "tools/operations/adopting/reading.py": OWN_FOLDER,
    "cdk/repository/loaded_models.py": f"{OWN_FOLDER}; {DRAFT}",
    "cdk/repository/looked_up_models.py": OWN_FOLDER,
    "cdk/repository/model_of_file.py": f"{OWN_FOLDER}: links to files of the user",
    "cdk/repository/several_gpus.py": OWN_FOLDER,
    "cdk/repository/staged_files.py": f"{OWN_FOLDER}; {DRAFT}",
    "testing/served_tensors.py": f"{OWN_FOLDER}: models of a simulated account",
    "testing/stable_templates.py": f"{NO_FILE}: it replaces names in a template",
}

#: Functions and methods that create, change or rename a file by its name.
WRITERS = frozenset(
    (
        *("write_text", "write_bytes", "touch", "rename", "symlink_to", "hardlink_to", "move"),
        *("copyfile", "copy2", "copytree", "copymode", "copystat", "copyfileobj", "truncate"),
        *("link", "symlink", "mkfifo", "mknod", "mkstemp", "NamedTemporaryFile", "extractall"),
        *("make_archive", "unpack_archive", "savefig", "tofile", "savez", "write_image"),
        *("download_file", "urlretrieve", "FileHandler", "RotatingFileHandler", "write_html"),
    )
)
#: What these names belong to, where others have a function of the same name.
OWNERS = {
    "copy": ("shutil",),
    "connect": ("sqlite3",),
    "replace": ("os",),
    "save": ("np", "numpy", "onnx", "torch"),
}
OPENERS = frozenset(("open", "fdopen", "ZipFile", "TarFile", "GzipFile", "BZ2File", "LZMAFile"))
WRITE_FLAGS = ("O_WRONLY", "O_RDWR", "O_CREAT")


def writes(code: str) -> list[str]:
    """The calls in ``code`` that write a file, with their lines."""
    return [
        f"{node.lineno}: {ast.unparse(node)[:80]}"
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call) and _is_write(node)
    ]


def _is_write(call: ast.Call) -> bool:
    owner, name = _name(call.func)
    if name in OWNERS and owner in OWNERS[name]:
        return True
    if name == "replace":  # that of a string has two arguments, that of a data class keywords
        return isinstance(call.func, ast.Attribute) and len(call.args) == 1 and not call.keywords
    if name in OPENERS:
        return any(_is_mode(argument) for argument in _arguments(call)) or any(
            flag in ast.unparse(call) for flag in WRITE_FLAGS
        )
    return name in WRITERS and not (name == "rename" and isinstance(call.func, ast.Name))


def _name(function: ast.expr) -> tuple[str, str]:
    if isinstance(function, ast.Attribute):
        return ast.unparse(function.value), function.attr
    return "", function.id if isinstance(function, ast.Name) else ""


def _arguments(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args
    yield from (keyword.value for keyword in call.keywords if keyword.arg == "mode")


def _is_mode(argument: ast.expr) -> bool:
    if isinstance(argument, ast.IfExp):
        return _is_mode(argument.body) or _is_mode(argument.orelse)
    if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
        return False
    mode = argument.value.partition(":")[0].partition("|")[0]
    return 0 < len(mode) <= 3 and set(mode) <= set("rwaxbt+") and bool(set(mode) & set("wax+"))


def _key(path: str) -> str:
    """``packages/check/src/triton_model_check/cli/x.py`` is ``check/cli/x.py``."""
    if not path.startswith("packages/"):
        return path.partition("/")[2]
    parts = path.split("/")
    return "/".join((parts[1], *parts[4:]))


def test_no_other_module_writes_files() -> None:
    """A file that a user or a repository can have put somewhere is never written through."""
    found = {_key(path): writes(module.read_text()) for path, module in MODULES.items()}
    assert {path: calls for path, calls in found.items() if calls and path not in REASONS} == {}
    assert [path for path in REASONS if not found.get(path)] == []


@pytest.mark.parametrize(
    "code",
    [
        'open("report.json", "w")',
        'path.open("ab")',
        'path.open("w" if is_new else "a")',
        'open(path, mode="x")',
        "path.write_text(text)",
        "os.open(path, os.O_CREAT | os.O_RDWR)",
        "partial.replace(path)",
        "os.replace(partial, path)",
        "shutil.copy(source, target)",
        'tarfile.open(path, "w:gz")',
        'zipfile.ZipFile(path, "x")',
        "np.save(path, array)",
    ],
)
def test_each_way_to_write_is_seen(code: str) -> None:
    """The test above sees how a file is written."""
    assert writes(code)


@pytest.mark.parametrize(
    "code",
    [
        "open(path)",
        'path.open("rb")',
        'text.replace("a", "b")',
        "replace(finding, fix=None)",
        "message.copy()",
        "os.open(path, os.O_RDONLY)",
    ],
)
def test_reading_is_no_writing(code: str) -> None:
    """The test above does not see what reads a file, or changes a value."""
    assert not writes(code)
