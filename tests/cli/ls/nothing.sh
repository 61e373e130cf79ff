cairn ls t/run-1
