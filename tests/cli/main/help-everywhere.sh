# Three ways to the same help.
cairn help version >a && cairn version -h >b && cairn version --help >c && cmp a b && cmp b c
cairn --help >d && cairn -h >e && cairn help >f && cmp d e && cmp e f
