# NEEDS: zstd
small_trace t.ctr 4 && cairn trace show --json t.ctr
