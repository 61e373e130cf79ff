# SPDX-License-Identifier: BSD-3-Clause
# Arrays made of the files of ranks; without one of those there would be zeros.
# NEEDS: hdf5
golden=$(dirname "$0")/../../golden/good-trail/run-1/series-1
cp -r "$golden/mark-3" "$golden/mark-3.h5" .
cairn import mark-3.h5 new && cairn export -o one.h5 new && h5diff one.h5 mark-3.h5 field
rm mark-3/rank-000001.h5
cairn import mark-3.h5 other
