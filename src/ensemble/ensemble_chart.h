/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pictures for a page that needs nothing else: lines and bars as SVG, arrays as images.
 */
#ifndef CAIRN_ENSEMBLE_CHART_H
#define CAIRN_ENSEMBLE_CHART_H

#include <stdio.h>

#include "base/base.h"

typedef CRN_VEC(double) crn_chart_numbers;

/* Lines over the same x; numbers that are not finite are gaps. */
typedef struct crn_chart_line {
    const char *name;
    const crn_chart_numbers *y;
} crn_chart_line;

void crn_chart_lines(FILE *to, const char *title, const crn_chart_numbers *x,
                     const crn_chart_line *line, size_t nlines);
void crn_chart_bars(FILE *to, const char *title, const double *height, size_t n);

/* Dots on an image: where, between 0 and 1 of width and height, and what, as the image's values. */
typedef struct crn_chart_dots {
    size_t n;
    const double *x, *y, *value;
} crn_chart_dots;

/* ny rows of nx numbers, the first row below; colours run from low to high. dots may be NULL. */
cairn_status crn_chart_image(FILE *to, const char *title, const double *v, uint64_t ny, uint64_t nx,
                             double low, double high, const crn_chart_dots *dots);

#endif
