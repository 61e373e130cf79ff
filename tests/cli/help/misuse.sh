cairn help version --json
