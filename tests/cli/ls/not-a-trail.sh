mkdir t && cairn ls t
