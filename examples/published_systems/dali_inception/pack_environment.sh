#!/bin/sh
# Writes model_files/pillow_env.tar.gz, for the twin on SageMaker: Pillow and NumPy for the image's Python.
#
# Not run by the tests: it needs micromamba (or conda) with conda-pack, and the network. Python 3.12 is that of
# the images from 25.04 on; those from 23.10 to 24.09 have 3.10.
set -eu
cd "$(dirname "$0")"
mkdir -p model_files
micromamba create -y -p model_files/pillow_env -c conda-forge python=3.12 'numpy<2' pillow conda-pack
micromamba run -p model_files/pillow_env conda-pack -p model_files/pillow_env -o model_files/pillow_env.tar.gz
