cairn run --tries 0 -- true
cairn run --fruitless 1 -- true
cairn run --hang 1s -- true
cairn run --pause soon -- true
