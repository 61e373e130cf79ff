small_trail t 1 1 1 && cairn verify t u
