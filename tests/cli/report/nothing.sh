cairn report
