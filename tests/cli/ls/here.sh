small_trail t 2 2 2 && cd t && cairn ls
