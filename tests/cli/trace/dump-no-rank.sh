# NEEDS: zstd
small_trace t.ctr 4 && cairn trace dump --rank 4 t.ctr
