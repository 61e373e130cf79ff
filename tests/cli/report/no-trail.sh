cairn report nowhere
