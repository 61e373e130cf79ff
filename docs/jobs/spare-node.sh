#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A job that outlives the loss of nodes: --no-kill keeps the rest of the allocation, marks are
# brought from the nodes that are left into the trail, and the program goes on with fewer ranks.
#SBATCH --job-name=app
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=32
#SBATCH --time=24:00:00
#SBATCH --no-kill
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@300
nodes_up='sinfo -h -N -n "$SLURM_JOB_NODELIST" -t idle,alloc,mix -o %N | sort -u | wc -l'
exec cairn run --requeue --elastic 128 --ranks "echo \$((32 * \$($nodes_up)))" \
    --drain-with 'srun --mpi=pmix --ntasks-per-node=1' -- srun --mpi=pmix -n 256 ./app input
