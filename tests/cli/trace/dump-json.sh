# NEEDS: zstd
small_trace t.ctr 4 && cairn trace dump --rank 1 --json t.ctr | sed -n "400,406p"
