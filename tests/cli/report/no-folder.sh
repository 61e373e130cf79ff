small_trail t 1 1 1 && cairn report -o no/where.html t
