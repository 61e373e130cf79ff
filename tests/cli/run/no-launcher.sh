cairn run -- ./no-such-launcher -n 4 app
