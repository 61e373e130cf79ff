# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zstd
cairn explain t/a
