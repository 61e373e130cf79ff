# SPDX-License-Identifier: BSD-3-Clause
# NEEDS: zmq
printf '[study]\nmembres = 3\n' > a.ini
cairn ensemble run a.ini
printf '[filter]\nname = etfk\n[runner]\ncommand = true\n' > b.ini
cairn ensemble run b.ini
printf '[runner]\ncommand = true\n' > c.ini
cairn ensemble stop c.ini
cairn ensemble walk c.ini
