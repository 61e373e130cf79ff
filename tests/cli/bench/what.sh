cairn bench
