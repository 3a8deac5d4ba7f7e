#!/bin/bash
# Trains the network of mnist_pipeline with a process for each stage:
#
#   samples/run.sh [flags of mnist_pipeline]      such as --stages=3 --schedule=gpipe
#
# Builds it first. What rank N says is in log_output/worker_N.log, below where
# the command is typed; what rank 0 says is shown as well.
set -euo pipefail

stages=2  # as the program has it
previous=
for argument; do
  case $previous$argument in
    --stages=* | -stages=*) stages=${argument#*=} ;;
    "--stages "* | "-stages "*) stages=$argument ;;
  esac
  previous=
  if [[ $argument == --stages || $argument == -stages ]]; then previous="$argument "; fi
done

folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
(cd "$folder" && ./bazelw build -c opt //samples:mnist_pipeline)

logs=$PWD/log_output
mkdir -p "$logs"
rm -f "$logs"/worker_*.log

as_root=()
if ((EUID == 0)); then as_root=(--allow-run-as-root); fi

# Each rank becomes the program, with its own log as output. When a rank fails,
# mpirun sends SIGTERM and, here after two seconds, SIGKILL: rank 0's copier
# lives until rank 0 has said its last words.
# shellcheck disable=SC2016  # the rank expands it
exec mpirun -n "$stages" --oversubscribe --bind-to none "${as_root[@]}" \
  --mca odls_base_sigkill_timeout 2 \
  bash -c '
    log=$0/worker_$OMPI_COMM_WORLD_RANK.log
    if ((OMPI_COMM_WORLD_RANK == 0)); then
      exec "$@" > >(trap "" TERM; exec tee "$log") 2>&1
    fi
    exec "$@" >"$log" 2>&1' "$logs" "$folder/bazel-bin/samples/mnist_pipeline" "$@"
