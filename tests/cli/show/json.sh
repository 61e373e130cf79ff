small_trail t 2 2 2 && cairn show --json t/run-1 20
