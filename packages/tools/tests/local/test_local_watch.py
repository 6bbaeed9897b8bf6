"""Changes of the files that a local run serves."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fake_container import in_loop

from constructs_triton_tools.local.changed_files import changes, files_state


@in_loop
async def test_a_change_is_yielded_once_it_is_complete(tmp_path: Path) -> None:
    """Files may be added, changed and deleted. Files that are not packed do not count."""
    model = tmp_path / "m" / "1" / "model.py"
    model.parent.mkdir(parents=True)
    model.write_text("a")
    found = changes(tmp_path, files_state(tmp_path), 0.01)
    for change in (lambda: model.write_text("more"), model.unlink, lambda: model.write_text("new")):
        waiting = asyncio.ensure_future(anext(found))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        change()
        await waiting
    waiting = asyncio.ensure_future(anext(found))
    (model.parent / "__pycache__").mkdir()
    (model.parent / "__pycache__" / "model.pyc").write_text("x")
    (model.parent / "._model.py").write_text("x")
    await asyncio.sleep(0.1)
    assert not waiting.done()
    waiting.cancel()


@in_loop
async def test_a_change_while_the_servers_start_is_yielded(tmp_path: Path) -> None:
    """The files are compared with those that the servers have read."""
    model = tmp_path / "model.py"
    model.write_text("a")
    read = files_state(tmp_path)
    model.write_text("changed meanwhile")
    await anext(changes(tmp_path, read, 0.01))


@in_loop
async def test_an_archive_is_watched_as_one_file(tmp_path: Path) -> None:
    """The source of a run may be a file."""
    archive = tmp_path / "m.tar.gz"
    archive.write_text("a")
    waiting = asyncio.ensure_future(anext(changes(archive, files_state(archive), 0.01)))
    await asyncio.sleep(0.1)
    archive.write_text("longer")
    await waiting
