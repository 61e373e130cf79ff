# A name must not drive the terminal.
cairn ls "$(printf 'a\033[31mb')"
