cairn drain nowhere
