# NEEDS: hdf5
echo hello > f && cairn import f t; ls
