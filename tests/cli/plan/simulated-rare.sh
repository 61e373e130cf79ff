# SPDX-License-Identifier: BSD-3-Clause
# Failures that come once in ten years and cost a month: simulated runs are long enough for them.
# Those that come once in a million years are not, and that is said.
plan() {
    cairn plan --state 100GB --local bandwidth=2GB,mtbf=30d --global "$@" --simulate 50 |
        sed -n '/^effi/,/^$/p'
}
plan bandwidth=1GB,mtbf=3650d,restart=30d
plan bandwidth=1GB,mtbf=365000000d,restart=30d
