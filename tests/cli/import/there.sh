# NEEDS: hdf5
small_trail t 1 1 1 && cairn export -o one.h5 t && cairn import one.h5 t/run-1
