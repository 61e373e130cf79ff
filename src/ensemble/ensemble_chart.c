/* SPDX-License-Identifier: BSD-3-Clause */
#include "ensemble/ensemble_chart.h"

#include <math.h>

enum { WIDTH = 460, HEIGHT = 180, LEFT = 52, BELOW = 20, IMAGE = 300 };

static const char *const colours[] = {"#1668b0", "#d1581a", "#2c8a4b", "#8b4ab0"};

/* --- lines ---------------------------------------------------------------------------------- */

typedef struct range {
    double low, high;
} range;

static void widen(range *r, double x)
{
    if (isfinite(x)) {
        r->low = fmin(r->low, x);
        r->high = fmax(r->high, x);
    }
}

static double scaled(const range *r, double x)
{
    return r->high > r->low ? (x - r->low) / (r->high - r->low) : 0.5;
}

static void begin(FILE *to, const char *title, const range *y)
{
    fprintf(to,
            "<figure><figcaption>%s</figcaption><svg viewBox=\"0 0 %d %d\" width=\"%d\">"
            "<rect x=\"%d\" y=\"4\" width=\"%d\" height=\"%d\" class=\"frame\"/>"
            "<text x=\"%d\" y=\"14\" class=\"end\">%.3g</text>"
            "<text x=\"%d\" y=\"%d\" class=\"end\">%.3g</text>",
            title, WIDTH, HEIGHT, WIDTH, LEFT, WIDTH - LEFT - 4, HEIGHT - BELOW - 4, LEFT - 4,
            y->high, LEFT - 4, HEIGHT - BELOW, y->low);
}

static void draw_line(FILE *to, const range *xs, const range *ys, const crn_chart_numbers *x,
                      const crn_chart_numbers *y, const char *colour)
{
    const char *open = NULL;
    for (size_t i = 0; i < x->n && i < y->n; i++) {
        if (!isfinite(y->at[i])) {
            fputs(open ? "\"/>" : "", to);
            open = NULL;
            continue;
        }
        if (!open)
            fprintf(to, "<polyline fill=\"none\" stroke=\"%s\" points=\"", colour);
        open = colour;
        fprintf(to, "%.1f,%.1f ", LEFT + (WIDTH - LEFT - 4) * scaled(xs, x->at[i]),
                4 + (HEIGHT - BELOW - 4) * (1 - scaled(ys, y->at[i])));
    }
    fputs(open ? "\"/>" : "", to);
}

void crn_chart_lines(FILE *to, const char *title, const crn_chart_numbers *x,
                     const crn_chart_line *line, size_t nlines)
{
    range xs = {INFINITY, -INFINITY}, ys = {0, 0};
    for (size_t i = 0; i < x->n; i++)
        widen(&xs, x->at[i]);
    for (size_t k = 0; k < nlines; k++)
        for (size_t i = 0; i < line[k].y->n; i++)
            widen(&ys, line[k].y->at[i]);
    begin(to, title, &ys);
    for (size_t k = 0; k < nlines; k++) {
        draw_line(to, &xs, &ys, x, line[k].y, colours[k % 4]);
        fprintf(to, "<text x=\"%d\" y=\"%d\" fill=\"%s\">%s</text>", LEFT + 10 + 130 * (int)k,
                HEIGHT - 5, colours[k % 4], line[k].name);
    }
    fputs("</svg></figure>\n", to);
}

void crn_chart_bars(FILE *to, const char *title, const double *height, size_t n)
{
    range ys = {0, 0};
    const double wide = (double)(WIDTH - LEFT - 4) / (double)CRN_MAX(n, (size_t)1);
    for (size_t i = 0; i < n; i++)
        widen(&ys, height[i]);
    begin(to, title, &ys);
    for (size_t i = 0; i < n; i++) {
        double tall = (HEIGHT - BELOW - 4) * scaled(&ys, height[i]);
        fprintf(to, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>",
                LEFT + wide * (double)i + 0.5, HEIGHT - BELOW - tall, fmax(wide - 1, 0.5), tall,
                colours[0]);
    }
    fputs("</svg></figure>\n", to);
}

/* --- images --------------------------------------------------------------------------------- */

/* From dark blue over green to yellow, evenly light: points of viridis. */
static void colour_of(double x, unsigned char bgr[3])
{
    static const unsigned char stop[][3] = {
        {68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}};
    const double at = fmin(fmax(x, 0), 1) * 4;
    const int k = at >= 4 ? 3 : (int)at;
    for (int c = 0; c < 3; c++)
        bgr[2 - c] = (unsigned char)(stop[k][c] + (at - k) * (stop[k + 1][c] - stop[k][c]) + 0.5);
}

static void put_base64(FILE *to, const unsigned char *p, size_t n)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        const unsigned v = (unsigned)p[i] << 16 | (i + 1 < n ? (unsigned)p[i + 1] << 8 : 0) |
                           (i + 2 < n ? p[i + 2] : 0);
        fputc(digit[v >> 18], to);
        fputc(digit[v >> 12 & 63], to);
        fputc(i + 1 < n ? digit[v >> 6 & 63] : '=', to);
        fputc(i + 2 < n ? digit[v & 63] : '=', to);
    }
}

/* A bitmap of 24 bits, its rows from below, each of a multiple of four bytes. */
static cairn_status put_bitmap(FILE *to, const double *v, uint64_t ny, uint64_t nx, const range *r)
{
    const size_t row = CRN_ROUND_UP(3 * (size_t)nx, (size_t)4), head = 54;
    const uint32_t nbytes = (uint32_t)(head + row * ny);
    unsigned char *p;
    CRN_TRY(crn_alloc(&p, nbytes));
    p[0] = 'B';
    p[1] = 'M';
    const uint32_t word[][2] = {{2, nbytes},        {10, (uint32_t)head}, {14, 40},
                                {18, (uint32_t)nx}, {22, (uint32_t)ny},   {26, 1 | 24 << 16}};
    for (size_t k = 0; k < sizeof word / sizeof *word; k++)
        for (int i = 0; i < 4; i++)
            p[word[k][0] + (uint32_t)i] = (unsigned char)(word[k][1] >> 8 * i);
    for (uint64_t j = 0; j < ny; j++)
        for (uint64_t i = 0; i < nx; i++)
            colour_of(scaled(r, v[j * nx + i]), p + head + j * row + 3 * i);
    put_base64(to, p, nbytes);
    free(p);
    return CAIRN_OK;
}

static void put_dots(FILE *to, const crn_chart_dots *d, const range *r, double tall)
{
    for (size_t i = 0; i < d->n; i++) {
        unsigned char bgr[3];
        if (!isfinite(d->x[i]) || !isfinite(d->y[i]))
            continue;
        colour_of(scaled(r, d->value[i]), bgr);
        fprintf(to,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"#%02x%02x%02x\" "
                "stroke=\"#fff\" stroke-width=\"0.8\"/>",
                IMAGE * d->x[i], tall * (1 - d->y[i]), bgr[2], bgr[1], bgr[0]);
    }
}

cairn_status crn_chart_image(FILE *to, const char *title, const double *v, uint64_t ny, uint64_t nx,
                             double low, double high, const crn_chart_dots *dots)
{
    const range r = {low, high};
    const double tall = (double)IMAGE * (double)ny / (double)nx;
    CRN_FAIL_IF(nx == 0 || ny == 0 || nx > 8192 || ny > 8192, CAIRN_EINVAL,
                "an image of %llu by %llu", (unsigned long long)nx, (unsigned long long)ny);
    fprintf(to,
            "<figure><figcaption>%s <small>%.3g to %.3g</small></figcaption>"
            "<svg viewBox=\"0 0 %d %.0f\" width=\"%d\"><image width=\"%d\" height=\"%.0f\" "
            "preserveAspectRatio=\"none\" href=\"data:image/bmp;base64,",
            title, low, high, IMAGE, tall, IMAGE, IMAGE, tall);
    CRN_TRY(put_bitmap(to, v, ny, nx, &r));
    fputs("\"/>", to);
    if (dots)
        put_dots(to, dots, &r, tall);
    fputs("</svg></figure>\n", to);
    return CAIRN_OK;
}
