#!/bin/bash
# What run.sh and run_inference.sh have in common:
#
#   launch.sh RANKS LOG_FOLDER SCRIPT arguments      an argument -n N takes the place of RANKS
#
# Under `bazel run` MindSpore, the package and the digits come from Bazel, elsewhere MindSpore and the package from
# .venv in the checkout. Logs, and paths among the arguments, are below where the command is typed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
ranks=$1
logs=$2
script=$here/$3
shift 3

arguments=()
while (($#)); do
  if [[ $1 == -n && $# -gt 1 ]]; then
    ranks=$2
    shift
  else
    arguments+=("$1")
  fi
  shift
done

place=$root/external/mindspore/site-packages/PLACE
if [[ -e $place ]]; then
  site_packages=$(dirname "$(readlink -f "$place")")
  export PYTHONPATH=$root/plugin/mindspore/python:$site_packages${PYTHONPATH:+:$PYTHONPATH}
  launcher=(/usr/bin/python3 "$root/plugin/mindspore/python/pipeloom/launcher.py")
  export DATA_PATH=${DATA_PATH:-$root/third_party/mnist_digits/train}
elif [[ -x $root/.venv/bin/pipeloom-run ]]; then
  launcher=("$root/.venv/bin/pipeloom-run")
else
  echo "$root/.venv is not there; make it with ./bazelw run //plugin/mindspore:venv" >&2
  exit 1
fi

cd "${BUILD_WORKING_DIRECTORY:-.}"
exec "${launcher[@]}" -n "$ranks" --log_dir "$logs" "$script" "${arguments[@]}"
