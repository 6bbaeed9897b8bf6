"""``triton-model-check``: the program, and the commands about a model repository."""

from __future__ import annotations

from constructs_triton_core.program.program import Command, Program

_EXAMPLES = """\
  triton-model-check models                find the errors of a model repository
  triton-model-check model new model.onnx  create models/model from a model file
  triton-model-check config show models    show configurations and tensors"""
PROGRAM = Program(
    "triton-model-check",
    "Check model repositories of NVIDIA Triton Inference Server. "
    "`triton-model-check PATH` is `check PATH`.",
    _EXAMPLES,
    {
        "Models": {
            "check": Command(f"{__name__}.check", "find the errors in a model repository"),
            "explain": Command(
                "constructs_triton_core.program.explain", "explain the code of a finding"
            ),
            "model": Command(
                f"{__name__}.model.command",
                "create a model's folder from a model file, such as model.onnx",
            ),
            "config": Command(
                f"{__name__}.config", "show configurations, tensors and ensemble graphs"
            ),
            "memory": Command(f"{__name__}.memory", "add up what the models take of GPUs and host"),
            "pack": Command(f"{__name__}.pack", "write a model repository as .tar.gz archives"),
            "lsp": Command(
                "triton_model_check.editor.command", "report findings in an editor, as you type"
            ),
        }
    },
    default="check",
)
main = PROGRAM.main
