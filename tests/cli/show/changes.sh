small_trail t 1 1 1 && cp "${0%.sh}.events" t/run-1/events && cairn show t 10
