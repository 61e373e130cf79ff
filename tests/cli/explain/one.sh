# SPDX-License-Identifier: BSD-3-Clause
cairn explain t/a
