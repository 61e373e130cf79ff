cairn help config --json --man
