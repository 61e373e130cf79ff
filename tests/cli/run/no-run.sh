cairn run -- sh -c "echo out; echo err >&2"
