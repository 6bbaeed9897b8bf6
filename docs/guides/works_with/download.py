"""Download the version of a registered model that has an alias:
python download.py scorer champion.
"""

from __future__ import annotations

import sys

from mlflow import MlflowClient
from mlflow.artifacts import download_artifacts

name, alias = sys.argv[1:]
version = MlflowClient().get_model_version_by_alias(name, alias).version
download_artifacts(f"models:/{name}/{version}", dst_path="downloaded")
print(version)
