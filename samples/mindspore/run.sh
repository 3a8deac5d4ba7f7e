#!/bin/bash
# Trains in two pipeline stages, each a process; more ranks train on more data at once:
#
#   samples/mindspore/run.sh [-n 2] [--epochs 10] [--steps 0] [--seed 1] [--data_dir DIR] [--losses_out FILE]
#
# The logs of the ranks are in log_output.
here=$(dirname "${BASH_SOURCE[0]}")
runfiles=${BASH_SOURCE[0]}.runfiles/pipeloom/samples/mindspore  # of `bazel run`
if [[ -d $runfiles ]]; then here=$runfiles; fi
exec "$here/launch.sh" 2 log_output distributed_pipeline_parallel.py "$@"
