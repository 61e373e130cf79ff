small_trail t 1 1 1 && cairn show t 99
