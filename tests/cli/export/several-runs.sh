# NEEDS: hdf5
small_trail t 1 1 1 && small_trail t 1 1 1 && cairn export t
