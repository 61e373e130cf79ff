small_trail t 2 2 2
echo garbage >t/run-1/manifest
cairn verify t
