# SPDX-License-Identifier: BSD-3-Clause
cairn diff t/a
