small_trail t 1 1 1 && ln -s t link && cairn ls link/run-1
