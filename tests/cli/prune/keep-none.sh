small_trail t 2 4 3 && cairn prune --keep 0 t
