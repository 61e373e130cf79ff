small_trail t 2 2 2 && parts=t/run-1/series-1/000 &&
mv $parts/part-000000 t/elsewhere && ln -s ../../../elsewhere $parts/part-000000 &&
printf X | dd of=$parts/part-000001 bs=1 seek=8200 conv=notrunc status=none &&
cairn verify t
