"""Writes the archives of this folder with PyTorch 2.13: ``python make_archives.py``."""
# mypy: ignore-errors

from __future__ import annotations

import torch
from torch import Tensor


class Net(torch.nn.Module):
    """One argument, and a tensor that tracing creates on the CPU."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(x) + torch.zeros(2)


class Pair(torch.nn.Module):
    """Optional arguments, and several results."""

    def forward(
        self, ids: Tensor, mask: Tensor | None = None, scale: float = 1.0
    ) -> tuple[Tensor, Tensor]:
        return (ids if mask is None else ids * mask) * scale, ids


class Mapping(torch.nn.Module):
    """One argument with all tensors."""

    def forward(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"y": inputs["x"]}


class Nested(torch.nn.Module):
    """A module of modules."""

    def __init__(self):
        super().__init__()
        self.first = Net()

    def forward(self, x, y):
        return self.first(x) + y


class Twice(torch.nn.Module):
    """A module without modules."""

    def forward(self, x):
        return x * 2


torch.jit.trace(Net(), torch.zeros(1, 4)).save("traced.pt")
torch.jit.script(Pair()).save("pair.pt")
torch.jit.script(Mapping()).save("mapping.pt")
torch.jit.script(Nested()).save("nested.pt")
torch.save(Net().state_dict(), "state_dict.pt")
torch.save(Net(), "module.pt")
torch.save(Net().state_dict(), "old_state_dict.pt", _use_new_zipfile_serialization=False)
torch.export.save(torch.export.export(Twice(), (torch.zeros(1, 4),)), "exported.pt2")
