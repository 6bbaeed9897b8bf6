"""The recipe for Neovim of the guide, in a real Neovim: findings, hover, a fix and completion."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from members import PROJECT

PAGE = PROJECT / "docs" / "checker" / "editors.md"
MODELS = PROJECT / "assets" / "model_repositories" / "digits"
NEOVIM = shutil.which("nvim")

# What a person does: wait for the findings, hover, apply the first fix, complete.
PROBE = """
local found = {}
local function ask(method, params)
  local answers = vim.lsp.buf_request_sync(0, method, params, 60000) or {}
  for _, answer in pairs(answers) do return answer.result end
end
vim.wait(60000, function() return #vim.diagnostic.get(0) > 0 end, 50)
local first = vim.diagnostic.get(0)[1]
found.place = { first.lnum, first.col }
found.message = first.message
vim.api.nvim_win_set_cursor(0, { first.lnum + 1, first.col })
local client = (vim.lsp.get_clients or vim.lsp.get_active_clients)()[1]
local encoding = client.offset_encoding
local here = vim.lsp.util.make_position_params(0, encoding)
found.hover = ask("textDocument/hover", here).contents.value
local range = vim.lsp.util.make_range_params(0, encoding)
range.context = { diagnostics = {} }
local action = ask("textDocument/codeAction", range)[1]
found.action = action.title
vim.lsp.util.apply_workspace_edit(action.edit, encoding)
found.line = vim.api.nvim_get_current_line()
vim.wait(60000, function() return #vim.diagnostic.get(0) == 0 end, 50)
found.left = #vim.diagnostic.get(0)
found.completions = #ask("textDocument/completion", here).items
vim.fn.writefile({ vim.fn.json_encode(found) }, vim.env.PROBE_OUTPUT)
vim.cmd("qall!")
"""


@pytest.mark.skipif(NEOVIM is None, reason="Neovim is not installed")
def test_recipe_for_neovim(tmp_path: Path) -> None:
    """The block of the page shows the mistake in a text with an emoji, explains and fixes it."""
    assert NEOVIM is not None
    block = re.search(r'```lua title="init.lua"\n(.*?)```', PAGE.read_text("utf-8"), re.DOTALL)
    assert block is not None
    (tmp_path / "init.lua").write_text(block[1], "utf-8")
    (tmp_path / "probe.lua").write_text(PROBE, "utf-8")
    shutil.copytree(MODELS, tmp_path / "models")
    config = tmp_path / "models" / "classifier" / "config.pbtxt"
    right = "# Größe 🎉\n" + config.read_text("utf-8")
    config.write_text(right.replace("TYPE_FP32", '"TYPE_FP32"', 1), "utf-8")

    output = tmp_path / "output.json"
    options = ("--headless", "-n", "-i", "NONE", "-u", "init.lua", "-S", "probe.lua")
    subprocess.run(
        [NEOVIM, *options, "models/classifier/config.pbtxt"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "PROBE_OUTPUT": str(output),
        },
        timeout=120,
        check=True,
    )

    found = json.loads(output.read_text("utf-8"))
    assert found["place"] == [8, 15]
    assert found["message"].startswith("an enum value is in quotes")
    assert "text-enum: Enum values are spelled as in the schema" in found["hover"]
    assert found["action"] == "Fix text-enum: remove the quotes"
    assert found["line"] == "    data_type: TYPE_FP32"
    assert found["left"] == 0
    assert found["completions"] > 10
