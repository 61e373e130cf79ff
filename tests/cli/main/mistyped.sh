cairn verison
