cairn help --jsn
