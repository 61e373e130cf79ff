/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slices of states against a walk over every element: random fields, ranks and pieces.
 */
#include "ensemble/ensemble_layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { CASES = 300, FIELDS = 3, MOST = 20000 };

static uint64_t below(unsigned *seed, uint64_t n)
{
    return (uint64_t)rand_r(seed) % n;
}

static crn_state_field random_field(unsigned *seed, int number)
{
    crn_state_field f = {.role = below(seed, 4) ? CAIRN_ASSIMILATED : CAIRN_CARRIED};
    uint64_t left = 1 + below(seed, MOST);
    snprintf(f.name, sizeof f.name, "f%d", number);
    f.type = below(seed, 2) ? CAIRN_FLOAT64 : CAIRN_FLOAT32;
    f.ndims = 1 + (int)below(seed, 4);
    for (int d = 0; d < f.ndims; d++) {
        f.global[d] = d == f.ndims - 1 ? left : 1 + below(seed, left < 12 ? left : 12);
        left = left / f.global[d] > 0 ? left / f.global[d] : 1;
        f.count[d] = f.global[d];
    }
    return f;
}

static void random_layout(unsigned *seed, crn_state_layout *l)
{
    crn_state_fields fields = {0};
    for (int i = 0; i < FIELDS; i++)
        assert_int_equal(crn_vec_push(&fields, random_field(seed, i)), CAIRN_OK);
    assert_int_equal(crn_layout_init(l, &fields), CAIRN_OK);
    crn_vec_done(&fields);
}

static uint64_t nelements(const crn_state_field *f)
{
    return crn_field_nbytes(f) / cairn_type_bytes(f->type);
}

/* The element of the global array that is number i of a piece. */
static uint64_t global_of(const crn_state_field *p, uint64_t i)
{
    uint64_t index = 0, stride = 1;
    for (int d = p->ndims - 1; d >= 0; d--) {
        index += (i % p->count[d] + p->offset[d]) * stride;
        i /= p->count[d];
        stride *= p->global[d];
    }
    return index;
}

static void number_elements(const crn_state_layout *l, unsigned char *state)
{
    for (size_t f = 0; f < l->field.n; f++)
        for (uint64_t i = 0; i < nelements(&l->field.at[f]); i++)
            if (l->field.at[f].type == CAIRN_FLOAT64)
                ((double *)(void *)(state + l->field.at[f].at))[i] = (double)i;
            else
                ((float *)(void *)(state + l->field.at[f].at))[i] = (float)i;
}

/* Every element is in one slice, which begins and ends with stretches. */
static void test_slices_part_the_state(void **state)
{
    (void)state;
    unsigned seed = 1;
    for (int c = 0; c < CASES; c++) {
        crn_state_layout l;
        random_layout(&seed, &l);
        const uint32_t n = 1 + (uint32_t)below(&seed, 9);
        uint64_t end[FIELDS] = {0}, byte = 0;
        for (uint32_t k = 0; k < n; k++) {
            crn_layout_slice(&l, k, n);
            assert_int_equal(l.first, byte);
            byte = l.end;
            for (size_t f = 0; f < FIELDS; f++) {
                uint64_t first, last;
                crn_slice_range(&l, f, &first, &last);
                assert_int_equal(first, end[f]);
                assert_true(last % CRN_LAYOUT_STRETCH == 0 || last == nelements(&l.field.at[f]));
                end[f] = last;
            }
        }
        assert_int_equal(byte, l.nbytes);
        for (size_t f = 0; f < FIELDS; f++)
            assert_int_equal(end[f], nelements(&l.field.at[f]));
        crn_layout_done(&l);
    }
}

static crn_state_field random_piece(unsigned *seed, const crn_state_field *whole)
{
    crn_state_field p = *whole;
    for (int d = 0; d < p.ndims; d++) {
        p.offset[d] = below(seed, p.global[d]);
        p.count[d] = below(seed, p.global[d] - p.offset[d] + 1);
    }
    return p;
}

/* One part: its elements, out of the slice and into it, against the walk. */
static void check_part(const crn_state_layout *l, size_t f, const crn_state_field *p,
                       const unsigned char *state)
{
    uint64_t first, end, low, high, nth = 0;
    crn_part_range(l, f, p, &first, &end);
    crn_slice_range(l, f, &low, &high);
    unsigned char *data = calloc(1, crn_part_nbytes(l, f, p) + 1);
    unsigned char *slice = calloc(1, crn_slice_nbytes(l) + 1);
    assert_non_null(data);
    assert_non_null(slice);
    crn_part_read(l, f, p, state + l->first, data);
    crn_part_write(l, f, p, data, slice);
    for (uint64_t i = 0; i < nelements(p); i++) {
        const uint64_t e = global_of(p, i);
        if (e < low || e >= high)
            continue;
        assert_int_equal(i, first + nth);
        assert_true(crn_element(data, p->type, nth) == (double)e);
        assert_true(crn_element(slice + crn_slice_at(l, f, e), p->type, 0) == (double)e);
        nth++;
    }
    assert_int_equal(nth, end - first);
    free(data);
    free(slice);
}

static void test_parts_are_what_a_walk_finds(void **state)
{
    (void)state;
    unsigned seed = 2;
    for (int c = 0; c < CASES; c++) {
        crn_state_layout l;
        random_layout(&seed, &l);
        unsigned char *whole = calloc(1, l.nbytes);
        assert_non_null(whole);
        number_elements(&l, whole);
        const uint32_t n = 1 + (uint32_t)below(&seed, 5);
        crn_layout_slice(&l, (uint32_t)below(&seed, n), n);
        for (size_t f = 0; f < FIELDS; f++) {
            const crn_state_field p = random_piece(&seed, &l.field.at[f]);
            check_part(&l, f, &p, whole);
        }
        free(whole);
        crn_layout_done(&l);
    }
}

static void check_boxes(const crn_state_layout *l, size_t f, const unsigned char *slice)
{
    cairn_field box[CRN_SLICE_BOXES];
    uint64_t next, end;
    crn_slice_range(l, f, &next, &end);
    const size_t nboxes = crn_slice_boxes(l, f, slice, box);
    assert_true(nboxes <= CRN_SLICE_BOXES);
    for (size_t b = 0; b < nboxes; b++) {
        crn_state_field p = l->field.at[f];
        memcpy(p.offset, box[b].offset, sizeof p.offset);
        memcpy(p.count, box[b].count, sizeof p.count);
        assert_ptr_equal(box[b].data, slice + crn_slice_at(l, f, next));
        for (uint64_t i = 0; i < nelements(&p); i++)
            assert_int_equal(global_of(&p, i), next++);
    }
    assert_int_equal(next, end);
}

/* Boxes of a slice, one behind the other, are its elements in their order. */
static void test_boxes_fill_the_slice(void **state)
{
    (void)state;
    unsigned seed = 3;
    for (int c = 0; c < CASES; c++) {
        crn_state_layout l;
        random_layout(&seed, &l);
        const uint32_t n = 1 + (uint32_t)below(&seed, 5);
        crn_layout_slice(&l, (uint32_t)below(&seed, n), n);
        unsigned char *slice = calloc(1, crn_slice_nbytes(&l) + 1);
        assert_non_null(slice);
        for (size_t f = 0; f < FIELDS; f++)
            check_boxes(&l, f, slice);
        free(slice);
        crn_layout_done(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_slices_part_the_state),
                                       cmocka_unit_test(test_parts_are_what_a_walk_finds),
                                       cmocka_unit_test(test_boxes_fill_the_slice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
