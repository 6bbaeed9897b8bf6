"""Small TensorRT plans and TorchScript archives for the examples."""

from __future__ import annotations

import io
import zipfile

from check_examples.onnx_models import ModelBytes


def described(content: bytes, description: str) -> ModelBytes:
    """Give content a description for the documentation."""
    described = ModelBytes(content)
    described.description = description
    return described


def plan(version: str = "10.0.1.6") -> ModelBytes:
    """The header of a plan that this version of TensorRT built."""
    header = b"ftrt" + bytes(20) + bytes(int(part) for part in version.split("."))
    return described(header, f"a plan of TensorRT {version}")


def torchscript(arguments: str = "X: Tensor", body: str = "torch.relu(X)") -> ModelBytes:
    """A TorchScript archive whose ``forward`` takes these arguments."""
    return described(
        zipped(_members(arguments, body)), f"TorchScript: forward({arguments}) returns {body}"
    )


def _members(arguments: str, body: str) -> dict[str, bytes]:
    code = (
        "class Net(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n"
        f"  def forward(self: __torch__.Net,\n    {arguments}) -> Tensor:\n    return {body}\n"
    )
    return {
        "data.pkl": b"\x80\x02c__torch__\nNet\nq\x00)\x81}X\x08\x00\x00\x00trainingq\x01\x89sb.",
        "code/__torch__.py": code.encode(),
        "constants.pkl": b"\x80\x02).",
        "version": b"3\n",
    }


def traced(*storages: str) -> ModelBytes:
    """A TorchScript archive that was traced with tensors of these storages, for
    the arguments X, Y and Z.
    """
    arguments = ", ".join(f"{name}: Tensor" for name, _ in zip("XYZ", storages, strict=False))
    tensors = b""
    for index, name in enumerate(storages):
        first = storages.index(name)  # a pickle writes a name once, and then refers to it
        storage = b"ctorch\n%b\nq%c" % (name.encode(), index) if first == index else b"h%c" % first
        tensors += b"ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storage%btQtR" % storage
    inputs = b"\x80\2}(X\7\0\0\0forward](%beu." % tensors
    shown = ", ".join(storages)
    return described(
        zipped({**_members(arguments, "torch.relu(X)"), "traced_inputs.pkl": inputs}),
        f"TorchScript: forward({arguments}), traced with {shown}",
    )


def zipped(members: dict[str, bytes]) -> bytes:
    """Return a zip archive of these members in one folder."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(f"model/{name}"), data)
    return content.getvalue()
