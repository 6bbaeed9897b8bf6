"""The archive of a Python environment, built by uv from wheels on this machine."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from handmade_wheels import write_wheel, write_wheels
from uv import find_uv_bin

from constructs_triton_core.errors import InvalidValueError, MissingDependencyError
from constructs_triton_tools.building.environments.archive import lock_of_archive, write_file
from constructs_triton_tools.building.environments.building import BuiltEnvironment, build
from triton_model_check.artifacts.environments.requirements import read_requirements
from triton_model_check.artifacts.environments.target import EnvironmentTarget, image_target

OFFLINE = "--no-index\n--find-links ./wheels\n"


@pytest.fixture
def project(tmp_path: Path, own_cache: Path) -> Path:
    """A folder with requirements and wheels."""
    folder = tmp_path / "project"
    write_wheels(folder / "wheels")
    (folder / "requirements.txt").write_text(f"{OFFLINE}pure\n")
    return folder


def build_in(
    folder: Path,
    name: str = "requirements.txt",
    target: EnvironmentTarget | None = None,
    update: bool = False,
) -> BuiltEnvironment:
    return build(read_requirements(folder / name), target or image_target(), update=update)


def members(archive: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(archive) as tar:
        return {member.name: member for member in tar}


def text(archive: Path, name: str) -> str:
    with tarfile.open(archive) as tar:
        file = tar.extractfile(name)
        assert file is not None
        return file.read().decode()


def test_layout_of_an_environment(project: Path) -> None:
    """The archive is a virtual environment without an interpreter,
    in which scripts run with that of PATH.
    """
    found = members(build_in(project).archive)
    assert (found["bin/python3"].linkname, found["bin/python"].linkname) == (
        "/usr/bin/python3",
        "python3",
    )
    archive = build_in(project).archive
    assert text(archive, "pyvenv.cfg").splitlines() == [
        "home = /usr/bin",
        "include-system-site-packages = true",
        "version = 3.12",
    ]
    assert "PATH" in text(archive, "bin/activate")
    site = "lib/python3.12/site-packages"
    assert {f"{site}/pure.py", f"{site}/pure_data/words.txt", f"{site}/helper.py"} <= found.keys()
    assert f"{site}/shared_namespace/pure_part/__init__.py" in found
    for script in ("bin/pure-script", "bin/pure-command"):
        assert found[script].mode == 0o755
        assert text(archive, script).startswith("#!/usr/bin/env python3\n")
    assert text(archive, "share/pure/note.txt") == "note\n"
    record = text(archive, f"{site}/pure-1.0.dist-info/RECORD")
    assert "../../../bin/pure-command" in record
    assert "INSTALLER" not in record
    assert not any(name.startswith((f"{site}/bin/", f"{site}/share/")) for name in found)
    owners = {(each.uid, each.gid, each.uname, each.mtime) for each in found.values()}
    assert owners == {(0, 0, "", 315532800)}


def test_same_bytes_in_another_place(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folder, umask, time zone, locale and cache change neither the archive nor the lock file."""
    first = build_in(project)
    other = tmp_path / "another place"
    other.mkdir()
    shutil.copytree(project / "wheels", other / "wheels")
    shutil.copy(project / "requirements.txt", other)
    for name, value in {
        "TZ": "Asia/Kathmandu",
        "LC_ALL": "C",
        "UV_CACHE_DIR": str(tmp_path / "uv"),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CONSTRUCTS_TRITON_CACHE_DIR", str(tmp_path / "second cache"))
    time.tzset()
    before = os.umask(0o077)
    try:
        second = build_in(other)
    finally:
        os.umask(before)
    assert second.is_new
    assert second.archive.read_bytes() == first.archive.read_bytes()
    assert second.lock_path.read_bytes() == first.lock_path.read_bytes()


def test_nothing_is_called_when_nothing_changed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a current lock file and the archive in the cache, uv is not needed,
    also after new comments.
    """
    first = build_in(project)
    assert (first.is_resolved, first.is_new) == (True, True)
    first.lock_path.write_bytes(first.lock_path.read_bytes().replace(b"\n", b"\r\n"))
    (project / "requirements.txt").write_text(
        f"# packages\n{OFFLINE}\npure  # the model imports it\n"
    )
    monkeypatch.setitem(sys.modules, "uv", None)
    second = build_in(project)
    assert (second.is_resolved, second.is_new, second.archive) == (False, False, first.archive)
    (project / "requirements.txt").write_text(f"{OFFLINE}helper\n")
    with pytest.raises(MissingDependencyError, match=r"pip install 'constructs-triton\[env\]'"):
        build_in(project)


def test_lock_file_keeps_versions(project: Path) -> None:
    """A change of the requirements keeps other versions; ``update`` chooses the newest."""
    (project / "requirements.txt").write_text(f"{OFFLINE}helper==1.0\n")
    assert build_in(project).lock.versions == {"helper": "1.0"}
    (project / "requirements.txt").write_text(f"{OFFLINE}pure\n")
    assert build_in(project).lock.versions == {"helper": "1.0", "pure": "1.0"}
    assert build_in(project, update=True).lock.versions == {"helper": "1.5", "pure": "1.0"}


def test_a_package_that_changed_on_the_index_is_refused(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hash in the lock file stops another file of the same name,
    and the old lock file stays.
    """
    built = build_in(project)
    built.archive.unlink()
    write_wheel(project / "wheels", "helper", "1.5", files={"other.py": ""})
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    with pytest.raises(
        InvalidValueError, match=r"ash mismatch.*run `constructs-triton env build` with"
    ):
        build_in(project)
    assert built.lock_path.read_text() == built.lock.text
    assert not list(built.archive.parent.glob("*.tar"))


def test_markers_are_those_of_the_image(project: Path) -> None:
    """Requirements apply to the image's Python and platform, not to those of this machine."""
    (project / "requirements.txt").write_text(
        f'{OFFLINE}helper; python_version == "3.8" and platform_system == "Linux"\n'
        'pure; python_version >= "3.9"\n'
    )
    assert build_in(project, target=image_target("22.12")).lock.versions == {"helper": "1.5"}
    assert (project / "requirements.py3.8.lock").exists()


def test_compiled_wheels_need_the_platform_of_the_image(project: Path) -> None:
    """A wheel for a newer C library than the image's is not chosen,
    and the message names the platform.
    """
    (project / "requirements.txt").write_text(f"{OFFLINE}compiled\n")
    write_wheel(project / "wheels", "compiled", tag="cp312-cp312-manylinux_2_39_x86_64")
    assert build_in(project).lock.versions == {"compiled": "1.0"}
    with pytest.raises(
        InvalidValueError, match=r"no packages for Python 3\.10 on x86_64-manylinux_2_35"
    ):
        build_in(project, target=image_target("24.09"))
    assert not (project / "requirements.py3.10.lock").exists()


def test_a_package_that_exists_only_as_source_is_refused(project: Path) -> None:
    """The message says how to build a wheel, and following it leads to an environment."""
    source = project / "wheels" / "only_source-1.0"
    source.mkdir()
    (source / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: only-source\nVersion: 1.0\n")
    with tarfile.open(project / "wheels" / "only_source-1.0.tar.gz", "w:gz") as tar:
        tar.add(source, "only_source-1.0")
    (project / "requirements.txt").write_text(f"{OFFLINE}only_source\n")
    with pytest.raises(
        InvalidValueError, match=r"only as source: build a wheel of it with `uv build --wheel`"
    ):
        build_in(project)
    write_wheel(project / "wheels", "only_source")
    assert build_in(project).lock.versions == {"only-source": "1.0"}


def test_numpy_stays_below_2_unless_it_is_chosen(project: Path) -> None:
    """An image before 24.11 cannot use NumPy 2; for later ones it can be required."""
    for version in ("1.26.4", "2.1.0"):
        write_wheel(project / "wheels", "numpy", version)
    write_wheel(project / "wheels", "uses_numpy", requires=["numpy"])
    (project / "requirements.txt").write_text(f"{OFFLINE}uses_numpy\n")
    assert build_in(project).lock.versions["numpy"] == "1.26.4"
    (project / "requirements.txt").write_text(f"{OFFLINE}uses_numpy\nnumpy>=2\n")
    assert build_in(project).lock.versions["numpy"] == "2.1.0"
    with pytest.raises(InvalidValueError, match="its server cannot use NumPy 2"):
        build_in(project, target=image_target("24.09"))
    write_wheel(project / "wheels", "needs_new_numpy", requires=["numpy>=2"])
    (project / "requirements.txt").write_text(f"{OFFLINE}needs_new_numpy\n")
    with pytest.raises(InvalidValueError, match='add "numpy>=2" to the requirements'):
        build_in(project)


def test_what_cannot_be_reached_or_written(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message keeps uv's reason and says what to set,
    or names the variable of the cache's folder.
    """
    requirements = (project / "requirements.txt").read_text()
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")  # uv would wait twelve seconds for the address
    (project / "requirements.txt").write_text("--index-url http://127.0.0.1:9/simple\npure\n")
    with pytest.raises(
        InvalidValueError, match=r"127\.0\.0\.1:9.*connect to the network, or set --index"
    ):
        build_in(project)
    (project / "requirements.txt").write_text(requirements)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CONSTRUCTS_TRITON_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(
        InvalidValueError, match="set CONSTRUCTS_TRITON_CACHE_DIR to another folder"
    ):
        build_in(project)


def test_uv_lock_and_pyproject_are_inputs(project: Path) -> None:
    """uv's own lock file and the dependencies of a project, with extras, give the same packages."""
    (project / "pyproject.toml").write_text(
        '[project]\nname = "app"\nversion = "1"\nrequires-python = ">=3.11"\ndependencies = '
        '["helper<1.5"]\n[project.optional-dependencies]\nmore = ["pure"]\n[tool.uv]\nno-index = '
        'true\nfind-links = ["wheels"]\n'
    )
    uv = [find_uv_bin(), "lock", "--quiet", "--python", sys.executable]
    subprocess.run(uv, cwd=project, check=True)
    for name in ("pyproject.toml", "uv.lock"):
        requirements = read_requirements(project / name, ["more"])
        built = build(requirements, image_target())
        assert built.lock.versions == {"helper": "1.0", "pure": "1.0"}
        assert not build(requirements, image_target()).is_resolved
        assert not build(
            read_requirements(project / name, built.lock.extras), image_target()
        ).is_resolved
        assert build(read_requirements(project / name), image_target()).lock.versions == {
            "helper": "1.0"
        }


def test_options_are_kept_in_the_lock_file(project: Path) -> None:
    """The next build needs no options; other options resolve again."""
    (project / "requirements.txt").write_text("helper\n")
    requirements, options = (
        read_requirements(project / "requirements.txt"),
        ["--find-links", "wheels"],
    )
    first = build(requirements, image_target(), options=[*options, "--offline"])
    assert not build(requirements, image_target()).is_resolved
    assert build(requirements, image_target(), options=[*options, "--no-index"]).is_resolved
    assert lock_of_archive(first.archive) == first.lock


@pytest.mark.parametrize("name", ["env.tar", "env.tar.gz", "env.tgz"])
def test_output_is_a_copy_or_compressed(name: str, project: Path, tmp_path: Path) -> None:
    """The user's file has the content of the archive in the cache,
    and compression has no time in it.
    """
    built = build_in(project)
    for attempt in ("a", "b"):
        write_file(built.archive, tmp_path / attempt / name)
    content = (tmp_path / "a" / name).read_bytes()
    assert content == (tmp_path / "b" / name).read_bytes()
    plain = content if name.endswith(".tar") else gzip.decompress(content)
    assert plain == built.archive.read_bytes()
    assert lock_of_archive(tmp_path / "a" / name) == built.lock


def test_output_that_cannot_be_written(project: Path, tmp_path: Path) -> None:
    """Another ending and a folder that is a file are refused, and nothing is left."""
    built = build_in(project)
    with pytest.raises(
        InvalidValueError, match=r"--output: must end with \.tar or \.tar\.gz, got 'env\.zip'"
    ):
        write_file(built.archive, Path("env.zip"))
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidValueError, match=r"cannot be written .*; choose another file"):
        write_file(built.archive, tmp_path / "file" / "env.tar")


def test_old_environments_leave_the_cache(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit of the cache, the environment that was not used for the
    longest time is deleted.
    """
    monkeypatch.setenv("CONSTRUCTS_TRITON_CACHE_BYTES", "1")
    first = build_in(project)
    (project / "requirements.txt").write_text(f"{OFFLINE}helper\n")
    second = build_in(project)
    assert (first.archive.exists(), second.archive.exists()) == (False, True)
