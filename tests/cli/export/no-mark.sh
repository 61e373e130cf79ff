# NEEDS: hdf5
small_trail t 2 2 2 && cairn export --mark 11 t
