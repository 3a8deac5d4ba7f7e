#!/bin/bash
# Runs the conformance suite with one process a rank, for the transports that GTEST_FILTER leaves:
#   mpi_conformance_test.sh <test binary> <sizes> [<mpirun option>...]
set -euo pipefail

binary=$PWD/$1
sizes=$2
shift 2

if ! command -v mpirun >/dev/null; then
  echo "there is no mpirun here; ./bazelw installs it." >&2
  exit 1
fi

# Open MPI puts sockets below it, whose paths are short.
TMPDIR=$(mktemp -d /tmp/mpi.XXXXXX)
trap 'rm -rf "$TMPDIR"' EXIT
export TMPDIR HOME=$TMPDIR
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# These are for one process.
unset XML_OUTPUT_FILE TEST_PREMATURE_EXIT_FILE TEST_TOTAL_SHARDS TEST_SHARD_INDEX TEST_SHARD_STATUS_FILE

for size in $sizes; do
  export PIPELOOM_TEST_SHARED_FILE=$TMPDIR/shared.$size
  echo "mpirun $* -n $size"
  # Ranks share the cores of a small machine. Each runs in a folder of its own.
  mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --tag-output "$@" -n "$size" \
    bash -c 'mkdir "$TMPDIR/$0.$OMPI_COMM_WORLD_RANK" && cd "$_" && exec "$1" --gtest_brief=1' "$size" "$binary"
done
