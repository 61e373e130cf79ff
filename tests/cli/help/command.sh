cairn help version
