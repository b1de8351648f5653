#!/usr/bin/env bash
# Creates a Python environment with DGL 2.1.0 and PyG on torch 2.2.1, for the scripts of this folder and of benches/gpu.
#
#   benches/dgl/setup.sh FOLDER
#
# Needs Python 3.8 to 3.11 with venv (PYTHON=python3.11 names one) and 6 GB of disk: the package index has only torch with CUDA's libraries.
# TORCH selects a different build. PYG_SAMPLING=yes also builds the samplers of PyG (torch-sparse, a C++ compiler and 15 minutes).
set -euo pipefail
if [ $# != 1 ]; then
  sed -n '2,7p' "$0" | sed 's/^# \{0,1\}//' >&2
  exit 2
fi
"${PYTHON:-python3}" -m venv "$1"
# Other packages are imports of DGL: torchdata that matches this torch, NumPy before version 2.
"$1/bin/pip" install --quiet "torch==${TORCH:-2.2.1}" 'torchdata==0.7.1' 'numpy<2' 'dgl==2.1.0' 'torch_geometric==2.8.1' \
  pandas psutil pydantic pyyaml scipy
if [ "${PYG_SAMPLING:-no}" = yes ]; then
  "$1/bin/pip" install --quiet wheel ninja 'setuptools<70'
  "$1/bin/pip" install --quiet --no-build-isolation 'torch-scatter==2.1.2' 'torch-sparse==0.6.18'
fi
DGLBACKEND=pytorch "$1/bin/python" -c 'import dgl, torch, torch_geometric as pyg
print("DGL", dgl.__version__, "and PyG", pyg.__version__, "on torch", torch.__version__)'
