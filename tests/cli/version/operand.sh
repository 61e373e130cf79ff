cairn version now
