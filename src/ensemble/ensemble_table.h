/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tables of a study's diagnostics: text with commas, a line for each cycle and type, field or
 * observation. They are written as a study goes (ensemble_diagnose.c), read for its report, and
 * made an HDF5 file of when it ends.
 */
#ifndef CAIRN_ENSEMBLE_TABLE_H
#define CAIRN_ENSEMBLE_TABLE_H

#include "ensemble/ensemble_study.h"

typedef struct crn_table {
    const char *name;  /* of the file */
    const char *head;  /* its first line: the names of its columns */
    const char *group; /* in HDF5, */
    int key[2];        /* with a group below for each text in these columns; -1: none */
} crn_table;

/* In this order: innovations, observations left out, scores against a truth. */
enum { CRN_TABLE_INNOVATIONS, CRN_TABLE_REJECTED, CRN_TABLE_TRUTH, CRN_TABLES };
extern const crn_table crn_tables[CRN_TABLES];

/* Call fn with the cells of each line but the first. Nothing is called where there is no table. */
typedef cairn_status crn_table_fn(void *arg, char *const *cell, size_t n);
cairn_status crn_table_each(const crn_study *s, const char *name, crn_table_fn *fn, void *arg);

/* NAN: it is no number. */
double crn_table_number(const char *text);

/*
 * All tables as diagnostics.h5: a group for each table, type and region, with an array for each
 * column over the cycles, and of ranks a matrix. Atomic. Does nothing without HDF5 or tables.
 */
cairn_status crn_tables_export(const crn_study *s);

#endif
