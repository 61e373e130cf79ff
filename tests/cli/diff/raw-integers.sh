# SPDX-License-Identifier: BSD-3-Clause
printf '\001\000\000\000\377\377\377\377' >a
printf '\003\000\000\000\001\000\000\000' >b
cairn diff --raw int32 --bound 2 a b && cairn diff --raw int32 --bound values=1.9 a b
