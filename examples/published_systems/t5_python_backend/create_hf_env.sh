#!/bin/sh
# Packs PyTorch and transformers for Triton's Python backend: sh create_hf_env.sh [TRITON_VERSION]
#
# Needs conda (or micromamba: CONDA=micromamba) and its channels. The environment needs the image's minor version
# of Python, because the process that runs model.py embeds the image's. `constructs-triton check`, and every
# endpoint at synth, refuses an archive with another one.
# create_hf_env_from_venv.sh does it without conda.
set -eu

version=${1:-26.05}
conda=${CONDA:-conda}
here=$(cd "$(dirname "$0")" && pwd)
python=$(constructs-triton facts image --region us-east-1 --version "$version" --json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["python"] or "")')
[ "$python" ] || { echo "the Python version of the image $version is not known" >&2; exit 1; }
prefix=$(mktemp -d)/hf_env

# Packages that users of the site install into their home would else be found before the environment's.
export PYTHONNOUSERSITE=True

"$conda" create --yes --prefix "$prefix" --channel conda-forge --override-channels "python=$python" pip
"$prefix/bin/python" -m pip install 'numpy<3' torch 'transformers>=4.40,<6' sentencepiece conda-pack
"$prefix/bin/conda-pack" --prefix "$prefix" --output "$here/hf_env.tar.gz" --force
