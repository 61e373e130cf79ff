# What can be read is shown; the exit code tells that it is not all.
small_trail t 2 2 2
rm t/run-1/series-1/000/part-000000
cairn show t 20
