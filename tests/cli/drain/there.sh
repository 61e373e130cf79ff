small_trail t 2 4 3 && cairn drain t && cairn drain --json t/run-1
