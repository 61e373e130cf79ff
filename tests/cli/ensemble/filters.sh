# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: lapacke
cairn ensemble filters
cairn ensemble filters "$(dirname "$(command -v cairn)")/../examples/filter_template.so"
cairn ensemble filters ./nothing.so
