"""Which recorded ONNX cases the server's core decides, and neither the backend nor its stand-in."""

from __future__ import annotations

REJECTED_BY_THE_CORE = frozenset(
    {
        "bad_auto_disabled_none",
        "bad_auto_empty_dim",
        "bad_auto_hidden_dir",
        "bad_default_model_filename_only",
        "bad_ens_step_auto_dtype",
        "bad_ens_step_auto_name",
        "bad_ens_step_auto_output",
        "bad_gpus",
        "bad_kind_gpu_auto",
        "bad_mme_no_config_at_root",
        "bad_onnx_at_root",
        "bad_platform_tensorrt_onnx_file",
        "bad_preferred",
        "bad_scalar_reshape_mbs0",
        "bad_string_bytes",
        "bad_warmup_batch_of_two",
        "bad_warmup_dims",
        "bad_warmup_input_missing",
        "odd_auto_batch_input",
        "odd_platform_other_backend_onnx",
    }
)
"""The server rejects these before or after the backend, with the stand-in too."""
