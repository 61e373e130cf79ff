# NEEDS: zstd
small_trace t.ctr 4 && cairn trace dump --rank 1 t.ctr | sed -n "1,6p;400,407p"
