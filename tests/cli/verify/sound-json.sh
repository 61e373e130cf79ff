small_trail t 2 4 3 && cairn verify --json t t/run-1
