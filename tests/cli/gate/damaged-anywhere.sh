# SPDX-License-Identifier: BSD-3-Clause
# Bits that are flipped, or an end that is missing, wherever: a sentence, and never a verdict.
small_run t a 0 1 1 && cairn gate --bless a.golden t/a
n=$(stat -c %s a.golden) && i=0
while [ $i -lt $n ]; do
    byte=$(od -An -tu1 -j $i -N 1 a.golden) # which may be any: runs are named at random
    cp a.golden b.golden && printf "\\$(printf %o $((byte ^ 255)))" |
        dd of=b.golden bs=1 seek=$i conv=notrunc 2>/dev/null
    cairn gate b.golden t/a 2>&1
    head -c $i a.golden >b.golden && cairn gate b.golden t/a 2>&1
    i=$((i + n / 15))
done | sort | uniq -c
