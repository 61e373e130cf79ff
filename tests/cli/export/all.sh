# NEEDS: hdf5
small_trail t 2 3 3 && cairn export --json --all -o out.h5 t && ls *.h5
h5diff out-20.h5 out-20.h5 && h5diff -q out-10.h5 out-30.h5 temperature
