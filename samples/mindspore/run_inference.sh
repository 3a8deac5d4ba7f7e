#!/bin/bash
# Predicts in four pipeline stages, each a process:
#
#   samples/mindspore/run_inference.sh [-n 4] [--seed 1]
#
# The logs of the ranks are in pipeline_inference_logs.
here=$(dirname "${BASH_SOURCE[0]}")
runfiles=${BASH_SOURCE[0]}.runfiles/pipeloom/samples/mindspore  # of `bazel run`
if [[ -d $runfiles ]]; then here=$runfiles; fi
exec "$here/launch.sh" 4 pipeline_inference_logs \
  distributed_pipeline_parallel_inference.py "$@"
