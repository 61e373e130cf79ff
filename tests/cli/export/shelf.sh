# SPDX-License-Identifier: BSD-3-Clause
# states of a shelf: the newest of a key, one version, all members of a cycle; what cannot be made
# NEEDS: hdf5
small_shelf s && cairn export s/m0001 && h5ls m0001-17.h5 && cairn export -o a.h5 s/m0001@3
h5dump -d grid -s 39,48 -c 1,2 -y -m %.1f a.h5 | grep -A1 'DATA {'
cairn export --mark 17 s && cairn export --all s/m0001 && ls *.xmf
cairn export s
cairn export s/m0001@4
cairn export --mark 5 s
