small_trail t 2 4 3 && small_trail t 1 1 1 && cairn ls t
