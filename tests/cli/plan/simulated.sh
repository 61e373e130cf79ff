# SPDX-License-Identifier: BSD-3-Clause
cairn plan --state 100GB --local bandwidth=2GB,mtbf=1d --partner bandwidth=1GB,mtbf=5d \
    --encoded bandwidth=500MB,mtbf=30d --global bandwidth=200MB,mtbf=100d --simulate 20
