# What could not be printed is not success.
cairn help >/dev/full
