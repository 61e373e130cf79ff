small_trail t 2 1 1
cd t/run-1/series-1/000 && mv part-000000 x && mv part-000001 part-000000 && mv x part-000001
cairn verify ../../..
