echo hello > f && cairn import f t; ls
