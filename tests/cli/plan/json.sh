# SPDX-License-Identifier: BSD-3-Clause
cairn plan --state 100GB --global bandwidth=2GB,mtbf=1d,restart=2min --simulate 20 --json
