# NEEDS: zstd
small_trace t.ctr 4 && cairn trace stat t.ctr
