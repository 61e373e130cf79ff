# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zstd
small_trace t.ctr 4
cairn trace show --where "rank=1-2 layer=coll" t.ctr
cairn trace show --where "comm=2" t.ctr | tail -n +3
cairn trace dump --rank 0 --where "file=field* call=open,close" t.ctr
cairn trace stat --where "site=0xa rank!=0" t.ctr
cairn trace diff --where "rank=0" t.ctr t.ctr
cairn trace export -f csv --where "rank=3 call=*_split" t.ctr
for terms in "rnk=1" "rank" "rank=a" "rank=3-1" "call=" ""; do
    cairn trace show --where "$terms" t.ctr || echo "$?"
done
