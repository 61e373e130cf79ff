# SPDX-License-Identifier: BSD-3-Clause
cairn ensemble new study.ini
cairn ensemble new study.ini
head -5 study.ini
cairn ensemble run study.ini
