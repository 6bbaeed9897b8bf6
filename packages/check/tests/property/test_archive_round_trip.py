"""Any tree of files is the same after packing, unpacking and packing again."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from backports import tarfile
from hypothesis import given, settings
from hypothesis import strategies as st

from triton_model_check.model_repository.archive import write_archive
from triton_model_check.model_repository.archive_inspection import inspect_archive
from triton_model_check.model_repository.content_digest import digest_of
from triton_model_check.model_repository.members import collect_members

# Between two letters, so that no rule for what is left out or refused matches.
NAMES = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\"), max_size=60
).map(lambda name: f"a{name}a")
TREES = st.recursive(
    st.binary(max_size=2000), lambda inner: st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)


def write_tree(path: Path, tree: object) -> None:
    if isinstance(tree, bytes):
        path.write_bytes(tree)
    elif isinstance(tree, dict):
        path.mkdir()
        for name, inner in tree.items():
            write_tree(path / name, inner)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(NAMES, TREES, max_size=4), st.integers(0, 3))
def test_tree_is_the_same_after_unpacking(tree: dict[str, object], level: int) -> None:
    """The unpacked tree packs to the same bytes, and inspection gives the same digest."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for root in ("one", "two"):
            (folder / root).mkdir()
        write_tree(folder / "one/m", {**tree, "config.pbtxt": b""})
        first, digest = packed(folder / "one", level)
        with tarfile.open(fileobj=io.BytesIO(first)) as tar:
            tar.extractall(folder / "two", filter="data")
        assert packed(folder / "two", level) == (first, digest)
        (folder / "a.tar.gz").write_bytes(first)
        assert inspect_archive(folder / "a.tar.gz").digest == digest


def packed(root: Path, level: int) -> tuple[bytes, str]:
    members, output = collect_members(root, ["m"]), io.BytesIO()
    digest = digest_of(members, write_archive(members, output, compression_level=level))
    return output.getvalue(), digest
