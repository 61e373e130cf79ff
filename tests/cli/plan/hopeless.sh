cairn plan --state 1TB --global bandwidth=1MB,mtbf=1h
