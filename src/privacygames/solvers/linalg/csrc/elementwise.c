/* Elementwise loops over slacks s, dual values z and their changes ds and dz, each in one pass. */

#include "kernel.h"
#include "threads.h"

#include <math.h>
#include <string.h>

typedef struct {
    const double *s, *z, *ds, *dz, *wanted, *base_ds, *base_dz;
    double *out_ds, *out_dz;
    double primal, dual, target, limit;
    double results[MAX_THREADS][2];
} Changes;

static long threads_for(long threads, long count)
{
    return worthwhile_threads(threads, 4.0 * count);
}

/* The growth of what a full step takes to zero. */
#define FULL_STEP -1.0

/* The smaller number, or what is not a number. */
static inline double least(double first, double second)
{
    return first <= second || first != first ? first : second;
}

VECTORISED static void quotients_in_range(void *context, long first, long last, long part)
{
    Changes *c = context;
    (void)part;
    for (long at = first; at < last; at++)
        c->out_dz[at] = c->z[at] / c->s[at];
}

/* Numerators, denominators; output: the quotients; threads. */
double divide(const Argument *a)
{
    Changes c = {.z = a[0].d, .s = a[1].d, .out_dz = a[2].d};
    run_in_threads(a[0].count, threads_for(a[3].k, a[0].count), quotients_in_range, &c);
    return 0;
}

VECTORISED static void sums_in_range(void *context, long first, long last, long part)
{
    Changes *c = context;
    (void)part;
    for (long at = first; at < last; at++)
        c->out_dz[at] = c->z[at] + c->primal * c->dz[at];
}

/* a, x, y; output: a x + y; threads. */
double axpy(const Argument *a)
{
    Changes c = {.primal = a[0].x, .dz = a[1].d, .z = a[2].d, .out_dz = a[3].d};
    run_in_threads(a[1].count, threads_for(a[4].k, a[1].count), sums_in_range, &c);
    return 0;
}

/* The least change/value below -1, or -1; not a number if some is none. */
static inline double least_in_range(const double *values, const double *changes, long first, long last)
{
    double growth = FULL_STEP;
    for (long start = first; start < last; start += 16) { /* few are less: only those are divided */
        const long end = start + 16 < last ? start + 16 : last;
        int less = 0;
        for (long at = start; at < end; at++)
            less |= !(changes[at] >= growth * values[at]);
        for (long at = start; less && at < end; at++)
            growth = least(growth, changes[at] / values[at]);
    }
    return growth;
}

VECTORISED static void growth_in_range(void *context, long first, long last, long part)
{
    Changes *c = context;
    c->results[part][0] = least_in_range(c->s, c->ds, first, last);
    c->results[part][1] = least_in_range(c->z, c->dz, first, last);
}

static void write_growth(Changes *c, long count, long threads, double *growth)
{
    run_in_threads(count, threads, growth_in_range, c);
    for (int which = 0; which < 2; which++) {
        growth[which] = c->results[0][which];
        for (long part = 1; part < threads; part++)
            growth[which] = least(c->results[part][which], growth[which]);
    }
}

/* s, z, ds, dz; output: the least ds/s and dz/z, or -1 if none is less; not a number if some is none; threads. */
double least_growth(const Argument *a)
{
    Changes c = {.s = a[0].d, .z = a[1].d, .ds = a[2].d, .dz = a[3].d};
    write_growth(&c, a[0].count, threads_for(a[5].k, a[0].count), a[4].d);
    return 0;
}

VECTORISED static void change_in_range(void *context, long first, long last, long part)
{
    Changes *c = context;
    (void)part;
    for (long at = first; at < last; at++)
        c->out_dz[at] = (c->wanted[at] - c->z[at] * c->out_ds[at]) / c->s[at];
    for (long at = first; at < last && c->base_ds; at++) {
        c->out_ds[at] += c->base_ds[at];
        c->out_dz[at] += c->base_dz[at];
    }
}

/* The wanted changes of products, s, z, ds (to which the base is added), the base's ds and dz (empty for none); output:
dz = (wanted - z ds)/s, plus the base's, and the least growth; threads. */
double direction_change(const Argument *a)
{
    const long count = a[1].count, threads = threads_for(a[8].k, count);
    Changes c = {.wanted = a[0].d, .s = a[1].d, .z = a[2].d, .out_ds = a[3].d, .base_ds = a[4].count ? a[4].d : 0,
                 .base_dz = a[5].d, .out_dz = a[6].d, .ds = a[3].d, .dz = a[6].d};
    run_in_threads(count, threads, change_in_range, &c);
    write_growth(&c, count, threads, a[7].d);
    return 0;
}

VECTORISED static void shift_in_range(void *context, long first, long last, long part)
{
    Changes *c = context;
    (void)part;
    for (long at = first; at < last; at++) {
        c->out_dz[at] = c->base_dz[at] - c->z[at] * c->out_ds[at] / c->s[at];
        c->out_ds[at] += c->base_ds[at];
    }
}

/* The base's ds and dz, s, z, ds (to which the base's is added); output: the base's dz - z ds/s; threads. */
double shifted_change(const Argument *a)
{
    Changes c = {.base_ds = a[0].d, .base_dz = a[1].d, .s = a[2].d, .z = a[3].d, .out_ds = a[4].d, .out_dz = a[5].d};
    run_in_threads(a[2].count, threads_for(a[6].k, a[2].count), shift_in_range, &c);
    return 0;
}

VECTORISED static void mehrotra_in_range(void *context, long first, long last, long part)
{
    Changes *c = context;
    (void)part;
    for (long at = first; at < last; at++) {
        double second_order = c->ds[at] * c->dz[at];
        second_order = second_order < -c->limit ? -c->limit : second_order;
        second_order = second_order > c->limit ? c->limit : second_order;
        c->out_dz[at] = c->target - (second_order + c->s[at] * c->z[at]);
    }
}

/* s, z, ds, dz, target, limit; output: target - s z - ds dz, the last cut off at the limit; threads. */
double mehrotra_change(const Argument *a)
{
    Changes c = {.s = a[0].d, .z = a[1].d, .ds = a[2].d, .dz = a[3].d, .target = a[4].x, .limit = a[5].x, .out_dz = a[6].d};
    run_in_threads(a[0].count, threads_for(a[7].k, a[0].count), mehrotra_in_range, &c);
    return 0;
}

VECTORISED static void gondzio_in_range(void *context, long first, long last, long part)
{
    Changes *c = context;
    const double low = c->target / c->limit, high = c->target * c->limit;
    (void)part;
    for (long at = first; at < last; at++) {
        const double product = (c->s[at] + c->primal * c->ds[at]) * (c->z[at] + c->dual * c->dz[at]);
        double central = product < low ? low : product;
        central = central > high ? high : central;
        const double change = central - product;
        c->out_dz[at] = change < -high ? -high : change;
    }
}

/* s, z, ds, dz, primal and dual step, target, factor of its neighbourhood; output: the change that brings products after
the steps back to the neighbourhood; threads. */
double gondzio_change(const Argument *a)
{
    Changes c = {.s = a[0].d, .z = a[1].d, .ds = a[2].d, .dz = a[3].d, .primal = a[4].x, .dual = a[5].x, .target = a[6].x,
                 .limit = a[7].x, .out_dz = a[8].d};
    run_in_threads(a[0].count, threads_for(a[9].k, a[0].count), gondzio_in_range, &c);
    return 0;
}

VECTORISED static void products_in_range(void *context, long first, long last, long part)
{
    Changes *c = context;
    double total = 0.0;
    for (long at = first; at < last; at++)
        total += (c->s[at] + c->primal * c->ds[at]) * (c->z[at] + c->dual * c->dz[at]);
    c->results[part][0] = total;
}

/* s, z, ds, dz, primal and dual step, threads: the sum of all products after the steps. */
double complementarity_after(const Argument *a)
{
    Changes c = {.s = a[0].d, .z = a[1].d, .ds = a[2].d, .dz = a[3].d, .primal = a[4].x, .dual = a[5].x};
    const long threads = threads_for(a[6].k, a[0].count);
    double total = 0.0;
    run_in_threads(a[0].count, threads, products_in_range, &c);
    for (long part = 0; part < threads; part++)
        total += c.results[part][0];
    return total;
}

typedef struct {
    const double *s, *ds, *z, *dz;
    double threshold, *ratios;
    int64_t *indices;
    long first[MAX_THREADS], counts[MAX_THREADS];
} Ratios;

/* The larger of -ds/s and -dz/z, or the first alone, where it is above the threshold: to the start of the range. */
VECTORISED static void ratios_in_range(void *context, long first, long last, long part)
{
    Ratios *r = context;
    const double *s = r->s, *ds = r->ds, *z = r->z, *dz = r->dz, threshold = r->threshold;
    long to = first;
    for (long start = first; start < last; start += 8) { /* few are above it: eight are skipped at a time */
        const long end = start + 8 < last ? start + 8 : last;
        int above = 0;
        for (long at = start; at < end; at++)
            above |= -ds[at] > threshold * s[at];
        for (long at = start; z && at < end; at++)
            above |= -dz[at] > threshold * z[at];
        for (long at = start; above && at < end; at++) {
            const double by_slack = -ds[at] / s[at], by_dual = z ? -dz[at] / z[at] : by_slack;
            const double ratio = by_slack > by_dual ? by_slack : by_dual;
            if (ratio > threshold) {
                r->ratios[to] = ratio;
                if (r->indices)
                    r->indices[to] = at;
                to++;
            }
        }
    }
    r->first[part] = first;
    r->counts[part] = to - first;
}

static double collect_ratios(Ratios *r, long count, long threads)
{
    long total = 0;
    run_in_threads(count, threads, ratios_in_range, r);
    for (long part = 0; part < threads; part++) {
        memmove(r->ratios + total, r->ratios + r->first[part], r->counts[part] * sizeof(double));
        if (r->indices)
            memmove(r->indices + total, r->indices + r->first[part], r->counts[part] * sizeof(int64_t));
        total += r->counts[part];
    }
    return (double)total;
}

/* s, ds, z, dz, a threshold; output: the larger of -ds/s and -dz/z where it is above the threshold, and where that is;
threads. Returns how many there are. */
double blocking_ratios(const Argument *a)
{
    Ratios r = {.s = a[0].d, .ds = a[1].d, .z = a[2].d, .dz = a[3].d, .threshold = a[4].x, .ratios = a[5].d, .indices = a[6].l};
    return collect_ratios(&r, a[0].count, threads_for(a[7].k, a[0].count));
}

/* Values, their changes, a threshold; output: the ratios -change/value above it; threads. Returns how many there are. */
double step_ratios(const Argument *a)
{
    Ratios r = {.s = a[0].d, .ds = a[1].d, .threshold = a[2].x, .ratios = a[3].d};
    return collect_ratios(&r, a[0].count, threads_for(a[4].k, a[0].count));
}
