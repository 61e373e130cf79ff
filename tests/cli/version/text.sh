cairn --version
