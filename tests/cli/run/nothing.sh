cairn run
