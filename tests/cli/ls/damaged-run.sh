# A run that cannot be read does not hide the others.
small_trail t 1 1 1 && small_trail t 1 1 1
echo garbage >t/run-1/manifest && rm -r t/run-1/series-1
cairn ls t
