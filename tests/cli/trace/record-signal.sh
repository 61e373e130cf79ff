# SPDX-License-Identifier: BSD-3-Clause
# A signal to the command that records is one to the command that is recorded.
# NEEDS: zstd
mkfifo started
cairn trace record -o t.ctr -- sh -c 'echo $$ > started; exec sleep 60' &
read -r program < started
kill $!
wait $!
echo $?
kill -0 "$program" 2> /dev/null && kill "$program" && echo "it goes on"
exit 0
