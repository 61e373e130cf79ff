# NEEDS: zstd
small_trace t.ctr 2 && cairn trace stat --json t.ctr
