#!/bin/sh
# Packs PyTorch and transformers without conda: sh create_hf_env_from_venv.sh [PYTHON]
#
# PYTHON is the interpreter of the environment (default: python3). An archive of venv-pack contains the packages,
# but not the interpreter: bin/python is a link. For your machine it is a link to PYTHON. For SageMaker, use the
# image's version of Python, and /usr, where the image has it:
#     PYTHON_PREFIX=/usr sh create_hf_env_from_venv.sh python3.12
# TORCH selects a build of PyTorch, for example TORCH=torch==2.13.0+cpu without CUDA's libraries.
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
        'numpy<2' "${TORCH:-torch}" 'transformers>=4.40,<6' venv-pack
fi
"$environment/bin/venv-pack" --quiet --prefix "$environment" --output "$here/hf_env.tar.gz" --force \
    --compress-level 1 ${PYTHON_PREFIX:+--python-prefix "$PYTHON_PREFIX"}
