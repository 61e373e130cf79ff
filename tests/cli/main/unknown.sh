cairn frobnicate
