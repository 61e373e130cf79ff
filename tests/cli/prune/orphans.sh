# SPDX-License-Identifier: BSD-3-Clause
# What no trail is known for stays until it is old; what is not Cairn's is not looked at.
mkdir -p l/0123456789abcdef0123456789abcdef/series-1 l/else && export CAIRN_LEVEL_LOCAL=$PWD/l
cairn prune --local --orphans | sed "s|$PWD|.|"
touch -d '8 days ago' l/*/series-1 l/*
cairn prune --local --orphans --dry-run --json
cairn prune -lo | sed "s|$PWD|.|"
ls l
