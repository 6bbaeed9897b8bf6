"""What people type into the search of the site, and the pages that answer."""

from __future__ import annotations

from collections.abc import Mapping

#: Fifteen queries by someone who had not read the pages: from titles of public issues and
#: questions.
BY_STRANGERS: Mapping[str, tuple[str, ...]] = {
    "run sagemaker container locally": ("guides/run_locally",),
    "mock invoke_endpoint": ("guides/testing",),
    "requirements.txt": ("guides/python_environments",),
    "call endpoint from lambda": ("guides/callers",),
    "api gateway timeout": ("guides/callers",),
    "insufficient instance capacity": ("guides/no_capacity",),
    "idle endpoints": ("guides/cost", "guides/operating"),
    "scale to zero": ("guides/components",),
    "time to first token": ("guides/measure",),
    "lora adapters": ("guides/adapters",),
    "deploy approved model from registry": ("guides/deploy_on_approval",),
    "another aws account": ("guides/accounts",),
    "sentence embeddings": ("guides/embeddings",),
    "batch transform": ("guides/batch",),
    "stream tokens": ("guides/generating", "guides/client"),
}
#: Fifteen queries of a review of this site.
OF_A_REVIEW: Mapping[str, tuple[str, ...]] = {
    "cold start": ("guides/cold_start",),
    "what does it cost": ("guides/cost",),
    "A/B test": ("guides/endpoints", "examples/examples"),
    "load test": ("guides/measure",),
    "huggingface": ("guides/embeddings",),
    "install error tritonserver": ("start/installation",),
    "rollback": ("guides/updating",),
    "conda": ("guides/python_environments",),
    "stop at night": ("guides/cost",),
    "ping health check": ("troubleshooting/deployment",),
    "canary": ("guides/updating",),
    "model.onnx": ("guides/model_files",),
    "change instance type": ("guides/updating",),
    "VPC without internet": ("guides/security",),
    "LLM": ("guides/generating",),
}
QUERIES = {**BY_STRANGERS, **OF_A_REVIEW}
