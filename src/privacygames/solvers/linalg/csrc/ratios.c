/* Loops over the ratio bounds sqrt(g) v(j) - v(i)/sqrt(g) >= 0 of many blocks.

The pairs of block b are those from starts[b] to starts[b + 1], in ascending order of i and j, each with root, its
sqrt(g). Unknowns u are (blocks, width), with the column v first. */

#include "kernel.h"
#include "threads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const double *u, *values, *root, *logs, *exponents, *roots, *before, *after;
    const float *join, *leave;
    const uint8_t *always;
    const int64_t *starts;
    const int32_t *i, *j;
    double *result, *allowed, *new_root;
    uint8_t *marks;
    int64_t *counts, *keys;
    int32_t *new_i, *new_j;
    double tolerance;
    long width, size, keep_all;
} Ratios;

static long threads_for(long threads, long pairs)
{
    return worthwhile_threads(threads, 4.0 * pairs);
}

VECTORISED static void slacks_of_blocks(void *context, long first, long last, long part)
{
    const Ratios *r = context;
    (void)part;
    for (long block = first; block < last; block++) {
        const double *row = r->u + block * r->width;
        for (int64_t at = r->starts[block]; at < r->starts[block + 1]; at++)
            r->result[at] = r->root[at] * row[r->j[at]] - row[r->i[at]] / r->root[at];
    }
}

/* u, starts, i, j, root; output: the slacks; width, threads. */
double ratio_slacks(const Argument *a)
{
    Ratios r = {.u = a[0].d, .starts = a[1].l, .i = a[2].i, .j = a[3].i, .root = a[4].d, .result = a[5].d, .width = a[6].k};
    run_in_threads(a[1].count - 1, threads_for(a[7].k, a[2].count), slacks_of_blocks, &r);
    return 0;
}

static void adjoint_of_blocks(void *context, long first, long last, long part)
{
    const Ratios *r = context;
    (void)part;
    for (long block = first; block < last; block++) {
        double *row = r->result + block * r->width;
        const int64_t end = r->starts[block + 1];
        for (int64_t at = r->starts[block]; at < end;) {
            const int32_t i = r->i[at];
            double sum = 0.0;
            for (; at < end && r->i[at] == i; at++) {
                row[r->j[at]] += r->root[at] * r->values[at];
                sum += r->values[at] / r->root[at];
            }
            row[i] -= sum;
        }
    }
}

/* values, starts, i, j, root; output: the sums of values times the rows of their pairs, to be added to; width, threads. */
double ratio_adjoint(const Argument *a)
{
    Ratios r = {.values = a[0].d, .starts = a[1].l, .i = a[2].i, .j = a[3].i, .root = a[4].d, .result = a[5].d, .width = a[6].k};
    run_in_threads(a[1].count - 1, threads_for(a[7].k, a[2].count), adjoint_of_blocks, &r);
    return 0;
}

static void hessian_of_blocks(void *context, long first, long last, long part)
{
    const Ratios *r = context;
    (void)part;
    for (long block = first; block < last; block++) {
        double *row = r->result + block * r->width;
        const int64_t end = r->starts[block + 1];
        for (int64_t at = r->starts[block]; at < end;) {
            const int32_t i = r->i[at];
            double sum = 0.0;
            for (; at < end && r->i[at] == i; at++) {
                const double square = r->root[at] * r->root[at];
                row[r->j[at]] += square * r->values[at];
                sum += r->values[at] / square;
                r->new_root[at] = -r->values[at];
            }
            row[i] += sum;
        }
    }
}

/* weights, starts, i, j, root; output: the diagonals of A^T diag(weights) A, to be added to, and its entries at (i, j);
width, threads. */
double ratio_hessian(const Argument *a)
{
    Ratios r = {.values = a[0].d, .starts = a[1].l, .i = a[2].i, .j = a[3].i, .root = a[4].d, .result = a[5].d,
                .new_root = a[6].d, .width = a[7].k};
    run_in_threads(a[1].count - 1, threads_for(a[8].k, a[2].count), hessian_of_blocks, &r);
    return 0;
}

static long padded(long size)
{
    return (size + 7) / 8 * 8; /* so that marks can be read eight at a time */
}

VECTORISED static void mark_blocks(void *context, long first_block, long last_block, long part)
{
    const Ratios *r = context;
    const long size = r->size, stride = padded(size);
    float *row = malloc(size * sizeof(float) + 1);
    (void)part;
    for (long block = first_block; block < last_block; block++) {
        const double *logs = r->logs + block * size;
        int64_t old = r->starts[block], count = 0;
        for (long second = 0; row && second < size; second++)
            row[second] = (float)logs[second];
        for (long first = 0; row && first < size; first++) {
            const float log = row[first], *join = r->join + first * size;
            const uint8_t *always = r->always + first * size;
            uint8_t *marked = r->marks + (block * size + first) * stride;
            for (long second = 0; second < size; second++)
                marked[second] = (log - row[second] > join[second]) | always[second];
            memset(marked + size, 0, stride - size);
            for (; old < r->starts[block + 1] && r->i[old] == first; old++) {
                const int32_t second = r->j[old];
                marked[second] |= r->keep_all || log - row[second] > r->leave[first * size + second];
            }
            for (long word = 0; word < stride; word += 8) {
                uint64_t eight;
                memcpy(&eight, marked + word, 8);
                count += __builtin_popcountll(eight);
            }
        }
        r->counts[block] = row ? count : -1;
    }
    free(row);
}

/* Logarithms of columns, (blocks, size); the log-ratios from which pairs join and below which they leave, in single
precision, and the mask of those that are always in the set, (size, size); starts, i, j of the set so far; whether none
of it leaves; output: marks, (blocks, size, size rounded up to eights), and their number in each block; size, threads.
Returns -1 without memory. */
double mark_ratios(const Argument *a)
{
    Ratios r = {.logs = a[0].d, .join = a[1].f, .leave = a[2].f, .always = a[3].b, .starts = a[4].l, .i = a[5].i,
                .j = a[6].i, .keep_all = a[7].k, .marks = a[8].b, .counts = a[9].l, .size = a[10].k};
    run_in_threads(a[9].count, threads_for(a[11].k, a[8].count / 8), mark_blocks, &r);
    for (long block = 0; block < a[9].count; block++)
        if (r.counts[block] < 0)
            return -1;
    return 0;
}

static void list_blocks(void *context, long first_block, long last_block, long part)
{
    const Ratios *r = context;
    const long size = r->size, stride = padded(size);
    (void)part;
    for (long block = first_block; block < last_block; block++) {
        const double *before = r->before + block * size, *after = r->after + block * size, *logs = r->logs + block * size;
        int64_t at = r->starts[block];
        double allowed = INFINITY;
        for (long first = 0; first < size; first++) {
            const uint8_t *marked = r->marks + (block * size + first) * stride;
            for (long word = 0; word < stride; word += 8) {
                uint64_t eight; /* one bit of each mark's byte; most are not set */
                memcpy(&eight, marked + word, 8);
                for (; eight; eight &= eight - 1) {
                    const long second = word + __builtin_ctzll(eight) / 8;
                    const double root = r->roots[first * size + second];
                    r->keys[at] = (block * size + first) * size + second;
                    r->new_i[at] = (int32_t)first;
                    r->new_j[at] = (int32_t)second;
                    r->new_root[at++] = root;
                    if (logs[first] - logs[second] - r->exponents[first * size + second] > r->tolerance) {
                        const double start = root * before[second] - before[first] / root;
                        const double change = start - (root * after[second] - after[first] / root);
                        const double step = start / (change > 1e-300 ? change : 1e-300);
                        allowed = step < allowed ? step : allowed;
                    }
                }
            }
        }
        r->allowed[block] = allowed < 1 ? allowed : allowed < INFINITY ? 1 : INFINITY;
    }
}

/* Columns before and after a step and logarithms of the latter, (blocks, size); exponents and sqrt(g) of all pairs;
marks, and where each block's pairs start; output: keys, i, j and root of the marked pairs, and the fraction of the step
that a block's pairs allow, infinite for the whole step; size, threads; the excess of a log-ratio that counts as a
violation. */
double list_ratios(const Argument *a)
{
    Ratios r = {.before = a[0].d, .after = a[1].d, .logs = a[2].d, .exponents = a[3].d, .roots = a[4].d, .marks = a[5].b,
                .starts = a[6].l, .keys = a[7].l, .new_i = a[8].i, .new_j = a[9].i, .new_root = a[10].d,
                .allowed = a[11].d, .size = a[12].k, .tolerance = a[14].x};
    run_in_threads(a[11].count, threads_for(a[13].k, a[5].count / 8), list_blocks, &r);
    return 0;
}

typedef struct {
    const int64_t *old_starts, *old_keys, *starts, *keys;
    const double *old_duals, *slacks;
    double *duals, target;
} Inheritance;

static void inherit_in_blocks(void *context, long first, long last, long part)
{
    const Inheritance *h = context;
    (void)part;
    for (long block = first; block < last; block++) {
        int64_t old = h->old_starts[block];
        const int64_t end = h->old_starts[block + 1];
        for (int64_t at = h->starts[block]; at < h->starts[block + 1]; at++) {
            while (old < end && h->old_keys[old] < h->keys[at])
                old++;
            const int known = old < end && h->old_keys[old] == h->keys[at] && h->old_duals[old] > 0;
            h->duals[at] = known ? h->old_duals[old] : h->target / h->slacks[at];
        }
    }
}

/* The set before: where each block's pairs start, their keys and dual values; the set now: the same, with slacks; the
product of pairs that joined; output: the dual values now; threads. */
double inherit_duals(const Argument *a)
{
    Inheritance h = {.old_starts = a[0].l, .old_keys = a[1].l, .old_duals = a[2].d, .starts = a[3].l, .keys = a[4].l,
                     .slacks = a[5].d, .target = a[6].x, .duals = a[7].d};
    run_in_threads(a[0].count - 1, threads_for(a[8].k, a[4].count), inherit_in_blocks, &h);
    return 0;
}

/* Dual values less what a pair and its opposite have in common: values, starts, i, j, root; output: the values, times
sqrt(g); size. Returns -1 without memory. */
double cancel_opposites(const Argument *a)
{
    const double *values = a[0].d, *root = a[4].d;
    const int64_t *starts = a[1].l;
    const int32_t *i = a[2].i, *j = a[3].i;
    const long size = a[6].k;
    int64_t *next = malloc(size * sizeof(int64_t) + 1);
    if (next == 0)
        return -1;
    for (long block = 0; block + 1 < a[1].count; block++) {
        int64_t at = starts[block];
        for (long first = 0; first < size; first++) {
            next[first] = at;
            while (at < starts[block + 1] && i[at] == first)
                at++;
        }
        for (at = starts[block]; at < starts[block + 1]; at++) {
            /* Opposites of ascending i in row j: the search in each row goes on where it ended. */
            int64_t *opposite = &next[j[at]];
            while (*opposite < starts[block + 1] && i[*opposite] == j[at] && j[*opposite] < i[at])
                ++*opposite;
            const int there = *opposite < starts[block + 1] && i[*opposite] == j[at] && j[*opposite] == i[at];
            const double value = values[at] / root[at], common = there ? values[*opposite] / root[*opposite] : 0.0;
            a[5].d[at] = (value > common ? value - common : 0.0) * root[at];
        }
    }
    free(next);
    return 0;
}

typedef struct {
    const double *logs, *to, *back;
    double *least, *most;
    long rows, size;
} Extensions;

VECTORISED static void bounds_of_secrets(void *context, long first, long last, long part)
{
    const Extensions *e = context;
    (void)part;
    for (long other = first; other < last; other++) {
        const double *to = e->to + other * e->size, *back = e->back + other * e->size;
        for (long row = 0; row < e->rows; row++) {
            const double *logs = e->logs + row * e->size;
            double least = -INFINITY, most = INFINITY;
            for (long secret = 0; secret < e->size; secret++) {
                const double below = logs[secret] - to[secret], above = logs[secret] + back[secret];
                least = below > least ? below : least;
                most = above < most ? above : most;
            }
            e->least[other * e->rows + row] = least;
            e->most[other * e->rows + row] = most;
        }
    }
}

/* Logarithms of columns, (rows, size); exponents from these secrets to others and back, (others, size); output: the
logarithms of the least and most entries of the others' rows, (others, rows); size, threads. */
double extension_bounds(const Argument *a)
{
    const long size = a[5].k;
    Extensions e = {.logs = a[0].d, .to = a[1].d, .back = a[2].d, .least = a[3].d, .most = a[4].d, .size = size};
    if (size == 0 || a[1].count == 0)
        return 0;
    e.rows = a[0].count / size;
    run_in_threads(a[1].count / size, worthwhile_threads(a[6].k, (double)a[1].count * e.rows), bounds_of_secrets, &e);
    return 0;
}

/* Exponents and limits, (size, size); some secrets; size: whether the exponent from i to such a secret and on to j is at
least the limit of i and j, for all i and j. */
VECTORISED double triangle_inequality_holds(const Argument *a)
{
    const long size = a[3].k;
    for (long i = 0; i < size; i++) {
        const double *exponents = a[0].d + i * size, *limits = a[1].d + i * size;
        for (long index = 0; index < a[2].count; index++) {
            const double to = exponents[a[2].l[index]], *on = a[0].d + a[2].l[index] * size;
            int64_t shorter = 0; /* as wide as what is compared */
            for (long j = 0; j < size; j++)
                shorter |= !(to + on[j] >= limits[j]);
            if (shorter)
                return 0;
        }
    }
    return 1;
}
