small_trail t 1 2 2
truncate -s 20000 t/run-1/series-1/000/part-000000
cairn verify t
