# SPDX-License-Identifier: BSD-3-Clause
cairn plan --state 2.5GB --at-once 250MB --pace 20min \
    --local bandwidth=780MB,mtbf=10min,fixed=50ms --global bandwidth=16MB,mtbf=16h,fixed=500ms
