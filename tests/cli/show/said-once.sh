# A part that is damaged is one sentence, not one for each of its marks.
small_trail t 1 4 4
rm t/run-1/series-1/000/part-000000
cairn show --json t > /dev/null
