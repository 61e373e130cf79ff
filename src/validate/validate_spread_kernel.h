/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The loops of validate_spread.c, which includes this once for each kind of processor: TARGET is
 * the attribute of its functions, and NAMED(name) their names. A compiler takes vectors apart
 * before it inlines, so that these must be functions of their own.
 */
TARGET static void NAMED(find_moments)(const crn_spread *s, const double *const *v, size_t n,
                                       moments *m)
{
    const lanes total = ALL(s->total);
    for (size_t i = 0; i < n; i += LANES) {
        lanes sum = {0}, rest = {0}, square = {0};
        for (uint32_t k = 0; k < s->nmembers; k++)
            sum += s->weight[k] * LOAD(v[k] + i);
        const lanes mean = sum / total;
        for (uint32_t k = 0; k < s->nmembers; k++) {
            const lanes d = LOAD(v[k] + i) - mean, wd = s->weight[k] * d;
            rest += wd;
            square += wd * d;
        }
        rest /= total;
        const lanes m2 = square - total * rest * rest, noise = mean * (64 * DBL_EPSILON);
        const lanes share = m2 * LEAST_SHARE, floor = total * (noise * noise) + LEAST_SQUARE;
        STORE(m->mean + i, mean);
        STORE(m->rest + i, rest);
        STORE(m->m2 + i, m2);
        STORE(m->least + i, PICK(share > floor, share, floor));
    }
}

TARGET static void NAMED(add_basis)(const moments *m, const factors *f, const double *x, size_t n,
                                    basis *b, struct work *w)
{
    lanes z = {0}, sum = {0}, min = LOAD(x), max = min, most = {0};
    choice self = {0};
    for (size_t i = 0; i < n; i += LANES) {
        const lanes v = LOAD(x + i), d = (v - LOAD(m->mean + i)) - LOAD(m->rest + i);
        const lanes q = LOAD(m->m2 + i) - f->out * (d * d), off = f->off * d, size = ABS(v);
        const choice right = q > LOAD(m->least + i);
        const lanes inverse = PICK(right, f->others / q, ALL(-1.));
        STORE(b->pull + i, f->pull * d);
        STORE(b->inverse + i, inverse);
        *(loose_choice *)(w->self + i) = ~right;
        self -= ~right;
        z += PICK(right, off * off * inverse, ALL(0.));
        sum += v;
        min = PICK(v < min, v, min);
        max = PICK(v > max, v, max);
        most = PICK(size > most, size, most);
    }
    part *p = &w->part;
    p->z = p->z0 = SUM(z);
    p->sum = SUM(sum);
    p->nself = (long)SUM(self);
    FOLD(min, p->min, <);
    FOLD(max, p->max, >);
    FOLD(most, p->most, >);
    lanes left = {0}, square = {0};
    const double mean = p->sum / (double)n;
    for (size_t i = 0; i < n; i += LANES) {
        const lanes d = LOAD(x + i) - mean;
        left += d;
        square += d * d;
    }
    p->own_sum = p->sum;
    p->own_left = p->left = SUM(left);
    p->own_square = p->square = SUM(square);
}

TARGET static void NAMED(add_other)(const moments *m, const factors *f, const double *x,
                                    const double *y, size_t n, const basis *b, struct work *w)
{
    lanes z = {0}, z0 = {0}, share = {0}, sum = {0}, own = {0}, min = LOAD(y), max = min,
          error = {0};
    choice self = {0};
    for (size_t i = 0; i < n; i += LANES) {
        const lanes v = LOAD(y + i), e = v - LOAD(x + i), size = ABS(e);
        const lanes d = (v - LOAD(m->mean + i)) - LOAD(m->rest + i);
        const lanes q = LOAD(m->m2 + i) - f->out * (d * d), off = f->off * d;
        const lanes d0 = (v - LOAD(w->m0.mean + i)) - LOAD(w->m0.rest + i);
        const lanes inverse = LOAD(b->inverse + i), off0 = d0 + LOAD(b->pull + i);
        const choice right = (q > LOAD(m->least + i)) & (inverse > 0);
        STORE(w->d + i, e);
        *(loose_choice *)(w->self + i) = ~right;
        self -= ~right;
        z += PICK(right, off * off * (f->others / q), ALL(0.));
        z0 += PICK(right, off0 * off0 * inverse, ALL(0.));
        share += PICK(right, e * e * inverse, ALL(0.));
        sum += e;
        own += v;
        min = PICK(v < min, v, min);
        max = PICK(v > max, v, max);
        error = PICK(size > error, size, error);
    }
    part *p = &w->part;
    p->z = SUM(z);
    p->z0 = SUM(z0);
    p->share = SUM(share);
    p->sum = SUM(sum);
    p->own_sum = SUM(own);
    p->nself = (long)SUM(self);
    FOLD(min, p->min, <);
    FOLD(max, p->max, >);
    FOLD(error, p->error, >);
    lanes left = {0}, square = {0}, product = {0}, own_left = {0}, own_square = {0};
    const double mean = p->sum / (double)n, own_mean = p->own_sum / (double)n;
    for (size_t i = 0; i < n; i += LANES) {
        const lanes d = LOAD(w->d + i) - mean;
        left += d;
        square += d * d;
        const lanes v = LOAD(y + i) - own_mean;
        product += d * (LOAD(x + i) - b->mean);
        own_left += v;
        own_square += v * v;
    }
    p->left = SUM(left);
    p->square = SUM(square);
    p->product = SUM(product);
    p->own_left = SUM(own_left);
    p->own_square = SUM(own_square);
}

#undef TARGET
#undef NAMED
