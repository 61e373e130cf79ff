small_trail t 2 4 3 && cairn prune -n --keep 2 t && cairn prune --keep 1 t
cairn ls t && cairn verify t && cairn prune --json t
