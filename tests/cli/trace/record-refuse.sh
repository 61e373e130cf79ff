# SPDX-License-Identifier: BSD-3-Clause
# What cannot be done is said before anything is lost, or run for nothing.
# NEEDS: zstd
echo old > t.ctr
mkdir folder
ln -s /dev/null link
cairn trace record -o t.ctr -- no-such-command
echo $?
cairn trace record -o t.ctr -- ./t.ctr
for out in folder link '' folder/ none/none/t.ctr; do
    cairn trace record -o "$out" -- touch ran
done
ls
