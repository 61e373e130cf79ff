# SPDX-License-Identifier: BSD-3-Clause
# What codecs made of variables: of one mark, and over all marks of a run, in words and as JSON.
# NEEDS: lz4 zstd zfp fpzip
small_trail t 1 1 1 && cp "${0%.sh}.events" t/run-1/events && cairn show t 10 &&
    cairn show t | tail -4 && cairn show --json t 10 |
    python3 -c 'import json,sys
for v in json.load(sys.stdin)["codecs"]: print(json.dumps(v))'
