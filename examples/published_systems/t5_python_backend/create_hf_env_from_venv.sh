#!/bin/sh
# Packs PyTorch and transformers without conda: sh create_hf_env_from_venv.sh [PYTHON]
#
# PYTHON is the interpreter of the environment (default: python3). An archive of venv-pack contains the packages,
# but not the interpreter: bin/python is a link. For your machine it is a link to PYTHON. For SageMaker, use the
# image's version of Python, and /usr, where the image has it:
#     PYTHON_PREFIX=/usr sh create_hf_env_from_venv.sh python3.12
# Everything comes from PyPI. Its PyTorch for Linux on x86-64 has CUDA's libraries, 4.4 GB in all.
# Without them, from PyTorch's own index:
#     PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu sh create_hf_env_from_venv.sh
# ENVIRONMENT packs a virtual environment that you have, which needs the package venv-pack.
set -eu

python=${1:-python3}
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
environment=${ENVIRONMENT:-$scratch/hf_env}

if [ -z "${ENVIRONMENT:-}" ]; then
    "$python" -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet \
        'numpy<2' torch 'transformers>=4.40,<6' venv-pack
fi
"$environment/bin/venv-pack" --quiet --prefix "$environment" --output "$here/hf_env.tar.gz" --force \
    --compress-level 1 ${PYTHON_PREFIX:+--python-prefix "$PYTHON_PREFIX"}
