cairn run --elastic 2 -- ./app -n 4
cairn run --elastic 5 -- mpirun -n 4 app
cairn run --ranks nproc -- mpirun -n 4 app
