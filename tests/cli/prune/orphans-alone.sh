cairn prune --orphans
