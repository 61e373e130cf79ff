# SPDX-License-Identifier: BSD-3-Clause
cairn plan --state 1GB --global bandwidht=3MB
cairn plan --state 1GB --global bandwidth
cairn plan --state 1GB --global bandwidth=0,mtbf=1h
cairn plan --state 1GB --local mtbf=1h
cairn plan --state 1GB --partner bandwidth=1MB
cairn plan --state 1GB --encoded bandwidth=1MB,mtbf=soon
cairn plan --state 1GB --at-once 2GB --local bandwidth=1MB,mtbf=1h
cairn plan --state 1GB --pace 0s --local bandwidth=1MB,mtbf=1h
cairn plan --state 1GB --local bandwidth=1MB,mtbf=1h --simulate 1
