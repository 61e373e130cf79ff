#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Call sites as source lines, against addr2line: C with inlined functions, C++ and Fortran; debug
files apart; programs that moved, were stripped or built anew; and what --where leaves of them:
trace_lines.py MPI RECORDER CAIRN CC [CXX [FORTRAN]]"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MPI, RECORDER, CAIRN, *COMPILERS = sys.argv[1:]

C = r"""
#include <mpi.h>
static inline __attribute__((always_inline)) void halo(int *x)
{
    MPI_Sendrecv_replace(x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
}
__attribute__((noinline)) void exchange(int *x)
{
    halo(x);
    MPI_Barrier(MPI_COMM_WORLD);
}
int main(int argc, char **argv)
{
    int x = 1;
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 5; i++)
        exchange(&x);
    MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
"""
CXX = r"""
#include <mpi.h>
namespace solver {
template <typename T> struct Grid {
    T value;
    __attribute__((noinline)) void step();
};
template <typename T> void Grid<T>::step()
{
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
}
int main(int argc, char **argv)
{
    solver::Grid<double> g{1};
    MPI_Init(&argc, &argv);
    g.step();
    MPI_Finalize();
    return 0;
}
"""
FORTRAN = r"""
module halo
  use mpi
contains
  subroutine exchange(x)
    integer :: x, ierr
    call mpi_bcast(x, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
  end subroutine
end module
program lines
  use halo
  integer :: ierr, x
  x = 1
  call mpi_init(ierr)
  call exchange(x)
  call mpi_finalize(ierr)
end program
"""


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    if done.returncode:
        sys.exit(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def build(folder, name, text, compiler, *flags):
    source, program = f"{folder}/{name}", f"{folder}/{name.split('.')[0]}"
    with open(source, "w", encoding="ascii") as f:
        f.write(text)
    run(compiler, "-g", "-O1", "-Wl,--build-id", source, "-o", program, *flags, cwd=folder)
    return program


def record(program):
    trace = program + ".ctr"
    run(f"{TOP}/tools/mpi-test", MPI, "2", "env", f"LD_PRELOAD={RECORDER}",
        f"CAIRN_TRACE_OUT={trace}", program)
    return trace


def sites(trace, *options):
    """{call: site}, and what was said on standard error."""
    done = run(CAIRN, "trace", "show", "--json", *options, trace)
    pieces = json.loads(done.stdout)["outline"]
    return {p["call"]: p["site"] for p in pieces if p["call"]}, done.stderr


def oracle(program, site):
    """The frames of addresses by addr2line, as (line, function)."""
    frames = []
    for frame in site.split(" < "):
        module, off = frame.split("+0x")
        assert module == os.path.basename(program), site
        text = run("addr2line", "-Cif", "-e", program, hex(int(off, 16) - 1)).stdout.split("\n")
        for function, place in zip(text[0::2], text[1::2]):
            frames.append((re.sub(r" .*", "", os.path.basename(place)), function))
    return frames


def expect(truth, what):
    if not truth:
        sys.exit(f"not so: {what}")


def check_program(program, wanted):
    trace = record(program)
    plain, _ = sites(trace, "--addresses")
    named, said = sites(trace)
    expect(not said, f"said of {program}: {said}")
    for call, site in plain.items():
        ours = re.findall(r"\(([^()]*:\d+)\)", named[call])
        theirs = [line for line, _ in oracle(program, site)]
        expect(ours == theirs, f"{call}: {named[call]} against {theirs}")
    for call, text in wanted.items():
        expect(named[call] == text, f"{call}: {named[call]} against {text}")
    return trace, named


def main():
    folder = tempfile.mkdtemp(prefix="scratch-lines-", dir=".")
    folder = os.path.abspath(folder)
    try:
        check_all(folder)
    finally:
        shutil.rmtree(folder)


def check_all(folder):
    program = build(folder, "lines.c", C, COMPILERS[0])
    trace, named = check_program(program, {
        "MPI_Sendrecv_replace": "halo (lines.c:5) < exchange (lines.c:10) < main (lines.c:18)",
        "MPI_Barrier": "exchange (lines.c:11) < main (lines.c:18)"})
    if len(COMPILERS) > 1:
        check_program(build(folder, "plus.cc", CXX, COMPILERS[1]), {
            "MPI_Allreduce": "solver::Grid<double>::step (plus.cc:10) < main (plus.cc:17)"})
    if len(COMPILERS) > 2:
        check_program(build(folder, "fort.f90", FORTRAN, COMPILERS[2], "-fallow-argument-mismatch"),
                      {"MPI_Bcast": "halo::exchange (fort.f90:7) < lines (fort.f90:15) < main "
                                    "(fort.f90:11)"})

    # what is looked at
    found, _ = sites(trace, "--where", "site=halo")
    expect(list(found) == ["MPI_Sendrecv_replace"], found)
    found, _ = sites(trace, "--where", "call!=*barrier,*sendrecv* site=lines.c:18")
    expect(not found, found)
    found, _ = sites(trace, "--where", "layer=coll rank=1")
    expect(sorted(found) == ["MPI_Allreduce", "MPI_Barrier"], found)

    # it moved
    os.mkdir(f"{folder}/away")
    moved = shutil.move(program, f"{folder}/away/lines")
    found, said = sites(trace)
    expect("+0x" in found["MPI_Barrier"] and "cannot be read" in said, said)
    expect(sites(trace, "--modules", f"/nowhere:{folder}/away") == (named, ""), "--modules")

    # its debugging information is apart; then gone
    os.mkdir(f"{folder}/apart")
    apart = f"{folder}/apart/lines.debug"
    run("objcopy", "--only-keep-debug", moved, apart)
    run("strip", "-g", moved)
    found, _ = sites(trace, "--modules", f"{folder}/away")
    expect(found["MPI_Barrier"] == "exchange < main", found)
    run("objcopy", f"--add-gnu-debuglink={apart}", moved)
    expect(sites(trace, "--modules", f"{folder}/away:{folder}/apart") == (named, ""), "apart")
    shutil.move(apart, f"{folder}/away")
    expect(sites(trace, "--modules", f"{folder}/away") == (named, ""), "debug file beside it")
    os.unlink(f"{folder}/away/lines.debug")
    run("strip", moved)
    found, said = sites(trace, "--modules", f"{folder}/away")
    expect("+0x" in found["MPI_Barrier"] and "neither debugging" in said, (found, said))

    # another build has other lines
    build(folder, "lines.c", "\n\n" + C.replace("i < 5", "i < 6"), COMPILERS[0])
    found, said = sites(trace)
    expect("+0x" in found["MPI_Barrier"] and "not the build that ran" in said, (found, said))


main()
