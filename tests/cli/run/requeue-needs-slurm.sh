unset SLURM_JOB_ID; cairn run --requeue -- true
