cairn run --limit 0 -- true
