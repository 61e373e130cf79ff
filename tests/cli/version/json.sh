cairn --version --json
