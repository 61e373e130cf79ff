cairn bench blocks --size 1KiB --stretch 2KiB
