# SPDX-License-Identifier: BSD-3-Clause
cairn diff --nan maybe t/a t/a
