small_trail t 2 4 3 && cairn prune --keep some t
