# SPDX-License-Identifier: BSD-3-Clause
"""cairn run with programs, surroundings and command lines that are odd."""
import fcntl
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import termios
import time
import unittest

import system
import test_run

CAIRN = system.BUILD / "bin" / "cairn"


class Odd(test_run.Supervised):
    def begin(self, *words, **how):
        """A command under 'cairn run', as a process."""
        command = [str(w) for w in (CAIRN, "run", "--pause", "0.1s", *words)]
        process = subprocess.Popen(command, env=self.env(), **{"stdin": subprocess.DEVNULL, **how})
        self.addCleanup(self.give_up, process)
        return process

    def give_up(self, process):
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()

    def output(self, *words, code=0, **how):
        """What a command under 'cairn run' prints, as bytes."""
        process = self.begin(*words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **how)
        out, _ = process.communicate(timeout=system.PATIENCE)
        self.assertEqual(process.returncode, code, out)
        return out

    def wait_until(self, condition):
        deadline = time.monotonic() + system.PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def begun_run(self):
        """A run that is not finished, so that what happens next is logged."""
        code, text = self.run_job(fault=(1, "store:3:kill"))
        self.assertNotEqual(code, 0, text)


class Output(Odd):
    def test_much(self):
        out = self.output("--", "sh", "-c", "head -c 20000000 /dev/zero; echo end")
        self.assertEqual((len(out), out[-4:]), (20000004, b"end\n"))

    def test_any_bytes(self):
        text = bytes(range(256)) * 3 + "grün 山".encode() + b" and no end of the line"
        (self.dir / "text").write_bytes(text)
        self.begun_run()
        out = self.output("--tries", 1, "--", "sh", "-c", f"cat {self.dir}/text; exit 3", code=2)
        self.assertTrue(out.startswith(text), out)
        kept = self.events("ended")[-1]["output"]
        self.assertTrue(kept.endswith("grün 山 and no end of the line"), kept)

    def test_long_line(self):
        self.begun_run()
        self.output("--tries", 1, "--", "sh", "-c", "head -c 9000 /dev/zero | tr '\\0' x; exit 3",
                    code=2)
        self.assertRegex(self.events("ended")[-1]["output"], "^x{4000,5000}$")

    def test_many_lines(self):
        self.begun_run()
        self.output("--tries", 1, "--", "sh", "-c", "seq 1000; exit 3", code=2)
        self.assertEqual(self.events("ended")[-1]["output"].split(),
                         [str(i) for i in range(981, 1001)])

    def test_who_writes_on(self):
        """A process that the program has left behind, which is not waited for."""
        out = self.output("--", "sh", "-c", "echo begin; yes & exit 0")
        self.assertTrue(out.startswith(b"begin\n"))

    def test_reader_takes_nothing(self):
        """The program is told to leave all the same."""
        pid = self.dir / "pid"
        process = self.begin("--", "sh", "-c", f"echo $$ >{pid}; exec yes", stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
        self.wait_until(lambda: pid.exists() and pid.read_text())
        self.wait_until(lambda: self.is_blocked(process.pid))
        process.send_signal(signal.SIGTERM)
        self.wait_until(lambda: not pathlib.Path(f"/proc/{pid.read_text().strip()}").exists())
        process.communicate(timeout=system.PATIENCE)
        self.assertEqual(process.returncode, 1)

    def is_blocked(self, pid):
        """Does the pipe that a process writes to hold all that it can?"""
        fd = os.open(f"/proc/{pid}/fd/1", os.O_WRONLY | os.O_NONBLOCK)
        try:
            return not select.select([], [fd], [], 0)[1]
        finally:
            os.close(fd)

    def test_reader_is_gone(self):
        done = self.dir / "done"
        process = self.begin("--", "sh", "-c", f"yes | head -n 100000; touch {done}",
                             stdout=subprocess.PIPE)
        process.stdout.close()
        self.assertEqual(process.wait(system.PATIENCE), 0)
        self.assertTrue(done.exists())

    def test_no_output_at_all(self):
        """Standard streams are closed: files that are opened then must not be taken for them."""
        for closed in ("<&- >&- 2>&-", ">&-", "2>&-", ">&- 2>&-"):
            done = self.dir / "done"
            script = f'"$0" run -- sh -c "echo out; echo err >&2; touch {done}" {closed}'
            ended = subprocess.run(["sh", "-c", script, CAIRN], env=self.env(), check=False,
                                   timeout=system.PATIENCE)
            self.assertEqual((ended.returncode, done.exists()), (0, True), closed)
            done.unlink()


class Signals(Odd):
    def test_ignored_ones_stay_ignored(self):
        """As with nohup: whoever started us does not want to be disturbed by them."""
        ready = self.dir / "ready"
        process = self.begin("--", "sh", "-c", f"touch {ready}; sleep 1; echo end",
                             stdout=subprocess.PIPE, preexec_fn=lambda: signal.signal(
                                 signal.SIGHUP, signal.SIG_IGN))
        self.wait_until(ready.exists)
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.communicate(timeout=system.PATIENCE)[0], b"end\n")
        self.assertEqual(process.returncode, 0)


    def test_others_are_passed_on(self):
        ready = self.dir / "ready"
        process = self.begin("--", "sh", "-c", "trap 'echo got it; exit 0' USR2;"
                             f"touch {ready}; while :; do sleep 0.05; done", stdout=subprocess.PIPE)
        self.wait_until(ready.exists)
        process.send_signal(signal.SIGUSR2)
        self.assertEqual(process.communicate(timeout=system.PATIENCE)[0], b"got it\n")
        self.assertEqual(process.returncode, 0)

    def test_suspended(self):
        """Both stop, as by Ctrl-Z, and both go on."""
        pid, go = self.dir / "pid", self.dir / "go"
        # no shell: one whose child is stopped on its way to exec waits, and is not stopped itself
        process = self.begin("--", sys.executable, "-c",
                             "import os, pathlib, time\n"
                             f"pathlib.Path('{pid}').write_text(str(os.getpid()))\n"
                             f"while not os.path.exists('{go}'): time.sleep(0.05)\n"
                             "print('end')", stdout=subprocess.PIPE)
        self.wait_until(lambda: pid.exists() and pid.read_text())
        process.send_signal(signal.SIGTSTP)
        for who in (process.pid, pid.read_text().strip()):
            self.wait_until(lambda who=who: self.state(who) == "T")
        process.send_signal(signal.SIGCONT)
        go.touch()
        self.assertEqual(process.communicate(timeout=system.PATIENCE)[0], b"end\n")
        self.assertEqual(process.returncode, 0)

    def state(self, pid):
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
        return text[text.rindex(")") + 2]

    def test_nobody_waits_for_children(self):
        """As under a parent that ignores CHLD, which is inherited."""
        self.output("--tries", 1, "--", "sh", "-c", "exit 3", code=2, preexec_fn=lambda:
                    signal.signal(signal.SIGCHLD, signal.SIG_IGN))


class Input(Odd):
    def test_pipe(self):
        process = self.begin("--", "cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(process.communicate(b"some words", system.PATIENCE)[0], b"some words")

    def test_terminal(self):
        """There is nothing to read, and interrupt comes by the terminal."""
        outer, inner = pty.openpty()
        self.addCleanup(os.close, outer)
        # short sleeps: one that is not at its exec yet may lose the signal, and is waited for
        process = self.begin("--", "sh", "-c", "cat; trap 'exit 5' USR1; echo ready;"
                             "while :; do sleep 0.05; done", stdin=inner, stdout=inner,
                             stderr=inner, start_new_session=True,
                             preexec_fn=lambda: self.take_terminal(inner))
        os.close(inner)
        text = b""
        while b"ready" not in text:
            text += os.read(outer, 1000)
        os.write(outer, b"\x03")
        self.assertEqual(process.wait(system.PATIENCE), 1)

    def take_terminal(self, fd):
        fcntl.ioctl(fd, termios.TIOCSCTTY, 0)


class Processes(Odd):
    def test_what_was_there_before_stays(self):
        """A job script may start something of its own and then become 'cairn run'."""
        pid = self.dir / "pid"
        script = (f"sleep 1000 >/dev/null 2>&1 & echo $! >{pid};"
                  'exec "$0" run --pause 0.1s -- sh -c "exit 3"')
        done = subprocess.run(["sh", "-c", script, CAIRN], env=self.env(), check=False,
                              stdin=subprocess.DEVNULL, capture_output=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        os.kill(int(pid.read_text()), signal.SIGKILL) # is there to be killed

    def test_daemon_of_a_failed_leg(self):
        """It has a session of its own and no parent, and would hold what the next leg needs."""
        pid = self.dir / "pid"
        script = self.dir / "daemonise"
        script.write_text(f"#!/bin/sh\nsetsid sh -c 'echo $$ >>{pid}; exec sleep 1000' &\n"
                          f"while [ ! -s {pid} ]; do sleep 0.01; done\n")
        script.chmod(0o700)
        self.output("--", "sh", "-c", f"{script}; exit 3", code=2)
        for line in pid.read_text().split():
            self.assertFalse(pathlib.Path(f"/proc/{line}").exists())

    def test_exit_codes(self):
        self.begun_run()
        for code, end in ((126, "exit code 126"), (127, "exit code 127"), (255, "exit code 255"),
                          (134, "killed by signal 6 (ABRT)")):
            self.output("--tries", 1, "--", "sh", "-c", f"exit {code}", code=2)
            self.assertEqual(self.ends()[-1], end)
            self.assertEqual(self.legs()[-1]["code"], code)
        self.output("--tries", 1, "--", "sh", "-c", "kill -SEGV $$", code=2)
        self.assertEqual((self.ends()[-1], self.legs()[-1]["signal"]),
                         ("killed by signal 11 (SEGV)", 11))

    def test_launcher_vanishes(self):
        """Between two legs: the log tells of the start that came to nothing."""
        launcher = self.dir / "launch"
        launcher.write_text('#!/bin/sh\nrm "$0"\nexit 3\n')
        launcher.chmod(0o700)
        self.begun_run()
        out = self.output("--", launcher, code=2)
        self.assertIn(b"No such file or directory", out)
        self.assertEqual(self.ends()[-2:], ["exit code 3", "could not be started"])


class Places(Odd):
    def test_trail_with_spaces(self):
        self.dir = self.dir / "a folder of 'mine' & \"yours\""
        self.dir.mkdir()
        job = self.supervise("--drain")
        self.marked(job)
        job.kill([1])
        self.must_end_right(job)
        self.assertTrue(self.events("drained"), job.text())

    def test_trail_that_cannot_be(self):
        (self.dir / "file").write_text("")
        self.settings = {**self.settings, "run_trail": self.dir / "file" / "trail"}
        job = self.supervise(slow=False)
        self.assertEqual(job.wait(), 2, job.text())
        self.assertIn(f"{self.dir}/file", job.text())

    def test_bare_name_of_program(self):
        """The number behind a program is the program's."""
        code, text = self.plain("--elastic", 1, "--", "mpirun", "./app", "-n", 4)
        self.assertEqual(code, 2)
        self.assertIn("--elastic needs a line", text)


if __name__ == "__main__":
    unittest.main()
