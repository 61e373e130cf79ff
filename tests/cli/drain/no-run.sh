small_trail t 2 4 3 && cairn drain t/run-7
