# NEEDS: hdf5
small_trail t 3 2 2 && cairn export t && h5ls -r run-1-20.h5
h5dump -d temperature -s 4095 -c 2 -y -m %.4f run-1-20.h5 | grep -A1 'DATA {'
h5dump -d step -y run-1-20.h5 | grep -A1 'DATA {'
