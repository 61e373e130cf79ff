#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A job that is longer than the queue allows: it leaves with a mark five minutes before its time is
# over, goes into the queue again by itself, and goes on from there, until the program is done.
#SBATCH --job-name=app
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=32
#SBATCH --time=12:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@300
exec cairn run --requeue --hang 20min -- srun --mpi=pmix ./app input
