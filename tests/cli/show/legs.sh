small_trail t 2 1 1 && cp "${0%.sh}.events" t/run-1/events && cairn ls t && cairn show t
