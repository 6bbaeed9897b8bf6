#!/bin/sh
# Packs what model.py of the tokenizer needs and the image lacks: sh pack_environment.sh [TRITON_VERSION]
#
# Needs conda (or micromamba: CONDA=micromamba) and its channels. The environment needs the image's minor version
# of Python, because the process that runs model.py embeds the image's. `constructs-triton check`, and every
# endpoint at synth, refuses an archive with another one.
# VENV_PYTHON=python3.10 sh pack_environment.sh packs a virtual environment of this Python, without conda.
set -eu

version=${1:-24.09}
conda=${CONDA:-conda}
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/environment

# Packages that users of the site install into their home would else be found before the environment's.
export PYTHONNOUSERSITE=True

if [ "${VENV_PYTHON:-}" ]; then
    "$VENV_PYTHON" -m venv "$prefix"
    "$prefix/bin/python" -m pip install --quiet 'numpy<2' tokenizers venv-pack
    "$prefix/bin/venv-pack" --quiet --prefix "$prefix" --output "$here/processing_env.tar.gz" --force \
        --compress-level 1
    exit
fi

python=$(constructs-triton facts image --region us-east-1 --version "$version" --json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["python"] or "")')
[ "$python" ] || { echo "the Python version of the image $version is not known" >&2; exit 1; }
"$conda" create --yes --prefix "$prefix" --channel conda-forge --override-channels "python=$python" pip
"$prefix/bin/python" -m pip install 'numpy<2' tokenizers conda-pack
"$prefix/bin/conda-pack" --prefix "$prefix" --output "$here/processing_env.tar.gz" --force
