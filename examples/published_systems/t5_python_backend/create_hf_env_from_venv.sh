#!/bin/sh
# Packs PyTorch and transformers without conda: sh create_hf_env_from_venv.sh [PYTHON]
#
# PYTHON is the interpreter of the environment (default: python3). An archive of venv-pack contains the packages,
# but not the interpreter: bin/python is a link. For your machine it is a link to PYTHON. For SageMaker, use the
# image's version of Python, and /usr, where the image has it:
#     PYTHON_PREFIX=/usr sh create_hf_env_from_venv.sh python3.12
set -eu

python=${1:-python3}
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$python" -m venv "$scratch/hf_env"
# TORCH selects a build, for example TORCH=torch==2.13.0+cpu without CUDA's libraries.
"$scratch/hf_env/bin/python" -m pip install --quiet 'numpy<2' "${TORCH:-torch}" 'transformers>=4.40,<6' venv-pack
"$scratch/hf_env/bin/venv-pack" --quiet --prefix "$scratch/hf_env" --output "$here/hf_env.tar.gz" --force \
    --compress-level 1 ${PYTHON_PREFIX:+--python-prefix "$PYTHON_PREFIX"}
