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
#: The queries of a later review that found no right page.
MISSED: Mapping[str, tuple[str, ...]] = {
    "environment variables of the container": ("guides/endpoints",),
    "yolo": ("guides/model_files",),
    "vscode": ("checker/automation",),
    "print statements not in logs": ("guides/operating",),
    "dynamic batching": ("guides/model_config", "guides/measure"),
    "arm64 graviton": ("guides/endpoints", "guides/python_environments"),
    "preload models": ("guides/multi_model", "guides/operating"),
    "pull request comment check": ("checker/automation",),
    "price of ml.g5.xlarge": ("guides/cost",),
}
#: Ten more queries by someone who had not read the pages.
OF_ANOTHER_STRANGER: Mapping[str, tuple[str, ...]] = {
    "multi model endpoint gpu": ("guides/multi_model",),
    "autoscaling": ("guides/scaling",),
    "async inference": ("guides/asynchronous",),
    "custom docker image": ("guides/run_locally",),
    "xgboost": ("guides/model_files",),
    "model warmup": ("guides/model_config", "guides/model_files"),
    "iam permissions": ("guides/endpoints", "guides/security"),
    "openai compatible api": ("guides/openai_clients",),
    "cloudwatch logs": ("guides/operating", "guides/monitoring"),
    "several models one gpu": ("concepts/choosing", "guides/multi_model"),
}
QUERIES = {**BY_STRANGERS, **OF_A_REVIEW, **MISSED, **OF_ANOTHER_STRANGER}
