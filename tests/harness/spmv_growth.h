/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How what changed grows in examples/spmv.c: blocks of 1 KiB, of SPMV_BLOCKS, that differ from the
 * mark so many steps before; means over the marks of a run with
 *     mpirun -n 2 spmv --kernel ... --size 32768 --batch 32 --every STEPS
 * within its first product. tests/system/test_spmv.py measures it again and finds these numbers.
 */
#ifndef CAIRN_TESTS_SPMV_GROWTH_H
#define CAIRN_TESTS_SPMV_GROWTH_H

enum { SPMV_POINTS = 6, SPMV_BLOCKS = 514 };

static const double SPMV_STEPS[SPMV_POINTS] = {1, 4, 16, 64, 256, 1024};
static const double SPMV_DIAGONAL[SPMV_POINTS] = {4, 4, 10, 34, 130, 258};
static const double SPMV_RANDOM[SPMV_POINTS] = {58.4, 161.2, 252.4, 258, 258, 258};

#endif
