small_trail t 2 4 1 && small_trail t 1 1 1 && cairn ls t/run-2/ && cairn ls --json t/run-1
