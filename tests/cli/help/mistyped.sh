cairn help verison
