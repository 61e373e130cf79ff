cairn verify
