# SPDX-License-Identifier: BSD-3-Clause
# Also a program that never opened a run hangs, and was not killed by somebody else.
cairn run --hang 2s --tries 1 -- sleep 600
