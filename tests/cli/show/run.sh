small_trail t 2 4 3 && small_trail t 1 1 1 && cairn show t && cairn show t/run-1
