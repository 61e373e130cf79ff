#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Where jobs may not be requeued: submit this several times, each to begin when the one before it
# has ended, however that was. The first that finds the run finished cancels the others.
#
#     job=$(sbatch --parsable chain.sh)
#     for i in 2 3 4; do job=$(sbatch --parsable --dependency=afterany:$job chain.sh); done
#SBATCH --job-name=app-chain
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=32
#SBATCH --time=12:00:00
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@300
export CAIRN_RUN_TRAIL=results CAIRN_RUN_NAME=production
cairn run -- srun --mpi=pmix ./app input &
run=$!
trap 'kill -USR1 $run' USR1
while kill -0 $run 2>/dev/null; do # a signal ends the waiting, not the program
    wait $run
    code=$?
done
[ "$code" != 0 ] || scancel --name=app-chain --state=PENDING
exit "$code"
