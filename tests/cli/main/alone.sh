cairn
