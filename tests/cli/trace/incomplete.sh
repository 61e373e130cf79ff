# NEEDS: zstd
small_trace t.ctr 2 cut && cairn trace show t.ctr
