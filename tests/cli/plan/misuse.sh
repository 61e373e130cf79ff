cairn plan --state 1GB
