cairn run --limit 0 -- true
cairn run --limit 100000000d --trail "" -- true
