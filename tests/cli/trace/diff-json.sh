# NEEDS: zstd
small_trace a.ctr 4 && small_trace b.ctr 3 && cairn trace diff --only pairs --json a.ctr b.ctr
