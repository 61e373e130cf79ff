small_trail t 2 2 2
rm t/run-1/series-1/000/part-000001
cairn verify t
