small_trail t 1 1 1 && rm -r t/run-1 && cairn ls t && cairn verify t
