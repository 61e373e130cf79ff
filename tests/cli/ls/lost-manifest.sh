small_trail t 2 3 2
rm t/run-1/manifest
mkdir -p t/run-1 && cairn ls t
