# NEEDS: hdf5
small_trail t 3 1 1 && cairn export -o one.h5 t && cairn import --ranks 2 one.h5 new
