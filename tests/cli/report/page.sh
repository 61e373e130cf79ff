umask 027
small_trail t 1 1 1 && cairn report t && ls -l report.html | cut -c1-10
grep -c '"run":"run-1"' report.html
grep -cE '(src|href)="?https?:|@[A-Z]+@' report.html
