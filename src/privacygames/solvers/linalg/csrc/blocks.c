/* Assembly, factorisation, inversion and solution of many symmetric blocks.

LAPACK and BLAS are called by the addresses that SciPy exports. Blocks are C-ordered; LAPACK reads them by columns, so
what it calls the upper triangle is the lower one here. */

#include "kernel.h"
#include "threads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Width up to which a block is factorised and inverted here: for so few rows LAPACK takes twice as long. */
#define LEAF 24

typedef void (*Lauum)(const char *, const int *, double *, const int *, int *);
typedef void (*Syrk)(const char *, const char *, const int *, const int *, const double *, const double *, const int *,
                     const double *, double *, const int *);
typedef void (*Trmm)(const char *, const char *, const char *, const char *, const int *, const int *, const double *,
                     const double *, const int *, double *, const int *);

typedef struct {
    Lauum lauum;
    Syrk syrk;
    Trmm trmm;
} Routines;

typedef struct {
    Routines routines;
    int width;
    long linked, shared, gram_rows, gram_columns, leading, which_count, weights_count, regularisation_count;
    const double *scales, *values, *rows, *roots, *weights, *regularisations;
    const int64_t *starts, *columns, *which;
    const int32_t *i, *j;
    double *packed, *sums;
    long failed[MAX_THREADS];
} Blocks;

/* Replace the lower triangle of a small block by the inverse of Cholesky's factor; whether it is positive definite. */
VECTORISED static int invert_small_factor(double *block, long stride, int width)
{
    double upper[LEAF][LEAF], inverse_diagonal[LEAF];
    for (int row = 0; row < width; row++)
        for (int column = 0; column <= row; column++)
            upper[column][row] = block[row * stride + column];
    for (int pivot = 0; pivot < width; pivot++) {
        if (!(upper[pivot][pivot] > 0))
            return 0;
        const double scale = inverse_diagonal[pivot] = 1 / sqrt(upper[pivot][pivot]);
        for (int column = pivot; column < width; column++)
            upper[pivot][column] *= scale;
        for (int row = pivot + 1; row < width; row++)
            for (int column = row; column < width; column++)
                upper[row][column] -= upper[pivot][row] * upper[pivot][column];
    }
    for (int row = 0; row < width; row++) {
        double sums[LEAF] = {0};
        double *block_row = block + row * stride;
        for (int before = 0; before < row; before++)
            for (int column = 0; column <= before; column++)
                sums[column] += upper[before][row] * block[before * stride + column];
        for (int column = 0; column < row; column++)
            block_row[column] = -inverse_diagonal[row] * sums[column];
        block_row[row] = inverse_diagonal[row];
    }
    return 1;
}

/* The same for a block of any size: its leading half, the rectangle below it, and what remains of the other half.

With A = (A11, A21^T; A21, A22) and K1 the inverse of the factor of A11, the factor has L21 = A21 K1^T below it; K2 is
the inverse of the factor of A22 - L21 L21^T, and the inverse has -K2 L21 K1 below K1. */
static int invert_factor(const Routines *routines, double *block, const int *stride, int width)
{
    if (width <= LEAF)
        return invert_small_factor(block, *stride, width);
    const double one = 1.0, minus_one = -1.0;
    const int first = (width / 2 + 7) / 8 * 8, second = width - first;
    double *below = block + (long)first * *stride, *rest = below + first;
    if (!invert_factor(routines, block, stride, first))
        return 0;
    routines->trmm("L", "U", "T", "N", &first, &second, &one, block, stride, below, stride);
    routines->syrk("U", "T", &second, &first, &minus_one, below, stride, &one, rest, stride);
    routines->trmm("L", "U", "N", "N", &first, &second, &minus_one, block, stride, below, stride);
    if (!invert_factor(routines, rest, stride, second))
        return 0;
    routines->trmm("R", "U", "N", "N", &first, &second, &one, rest, stride, below, stride);
    return 1;
}

/* Write the lower triangle of D H D of one block; its diagonal is left to the caller. */
static void assemble(const Blocks *blocks, long index, double *block, double *scaled)
{
    const int width = blocks->width;
    const double *scale = blocks->scales + index * width;
    for (int row = 0; row < width; row++)
        memset(block + (long)row * width, 0, row * sizeof(double));
    for (int64_t entry = blocks->starts[index]; entry < blocks->starts[index + 1]; entry++) {
        int32_t first = blocks->i[entry], second = blocks->j[entry];
        int32_t row = first > second ? first : second, column = first > second ? second : first;
        block[(long)row * width + column] += blocks->values[entry] * scale[row] * scale[column];
    }
    if (blocks->gram_rows == 0)
        return;
    const long columns = blocks->gram_columns;
    const double *roots = blocks->roots + index * blocks->gram_rows;
    for (long row = 0; row < blocks->gram_rows; row++)
        for (long column = 0; column < columns; column++)
            scaled[row * columns + column] =
                blocks->rows[row * columns + column] * scale[blocks->columns[column]] * roots[row];
    if (blocks->leading) {
        const double one = 1.0;
        int leading = (int)blocks->leading, rows = (int)blocks->gram_rows, stride = (int)columns;
        blocks->routines.syrk("U", "N", &leading, &rows, &one, scaled, &stride, &one, block, &width);
    }
    for (long last = blocks->leading; last < columns; last++) {
        double *block_row = block + blocks->columns[last] * width;
        for (long row = 0; row < blocks->gram_rows; row++)
            for (long column = 0; column <= last; column++)
                block_row[blocks->columns[column]] += scaled[row * columns + last] * scaled[row * columns + column];
    }
}

/* Add the weighted rows of J H^-1 J^T below the diagonal, given the lower triangle of H^-1. */
static void add_projected(const Blocks *blocks, long index, double *sums, double *inverse)
{
    const int width = blocks->width;
    const long linked = blocks->linked, shared = blocks->shared, count = blocks->weights_count;
    const double *weights = blocks->weights + index * count;
    for (int row = 0; row < width; row++)
        for (int column = 0; column < row; column++)
            inverse[(long)column * width + row] = inverse[(long)row * width + column];
    if (blocks->which_count == 0) { /* one row: minus the weighted sum of the first unknowns */
        double *last = sums + (linked - 1) * linked;
        for (int row = 0; row < width; row++) {
            double product = 0.0;
            for (long column = 0; column < count; column++)
                product += inverse[(long)row * width + column] * weights[column];
            if (row < shared)
                last[row] -= product;
            if (row < count)
                last[linked - 1] += weights[row] * product;
        }
        return;
    }
    for (long first = 0; first < count; first++) {
        double *row = sums + (shared + first) * linked;
        const double *inverse_row = inverse + blocks->which[first] * width;
        for (long column = 0; column < shared; column++)
            row[column] -= weights[first] * inverse_row[column];
        for (long second = 0; second <= first; second++)
            row[shared + second] += weights[first] * weights[second] * inverse_row[blocks->which[second]];
    }
}

/* The inverse of one block's factor, with the smallest regularisation that it needs; whether there is one. */
static int assemble_and_invert(const Blocks *blocks, long index, double *block, double *scaled)
{
    const int width = blocks->width;
    for (long attempt = 0; attempt < blocks->regularisation_count; attempt++) {
        assemble(blocks, index, block, scaled);
        for (int row = 0; row < width; row++)
            block[(long)row * (width + 1)] = 1.0 + blocks->regularisations[attempt];
        if (invert_factor(&blocks->routines, block, &width, width))
            return 1;
    }
    return 0;
}

static void factorise_blocks(void *context, long first, long last, long part)
{
    Blocks *blocks = context;
    const int width = blocks->width;
    const long linked = blocks->linked, square = (long)width * width;
    double *sums = blocks->sums + part * linked * linked;
    double *block = calloc(square + blocks->gram_rows * blocks->gram_columns + 1, sizeof(double));
    blocks->failed[part] = last - first;
    if (block == 0)
        return;
    for (long index = first; index < last; index++) {
        const double *scale = blocks->scales + index * width;
        double *triangle = blocks->packed + index * (width * (width + 1L) / 2);
        int info;
        if (!assemble_and_invert(blocks, index, block, block + square))
            break;
        for (int row = 0; row < width; row++) {
            double *block_row = block + (long)row * width;
            for (int column = 0; column <= row; column++)
                triangle[column] = block_row[column] *= scale[column];
            triangle += row + 1;
        }
        blocks->routines.lauum("U", &width, block, &width, &info);
        for (long row = 0; row < blocks->shared; row++)
            for (long column = 0; column <= row; column++)
                sums[row * linked + column] += block[row * width + column];
        if (blocks->weights_count)
            add_projected(blocks, index, sums, block);
        blocks->failed[part]--;
    }
    free(block);
}

/* The packed inverse factors M = L^-1 D of blocks, and the Schur complement of their coupling rows.

Arguments: the addresses of dlauum, dsyrk, dtrmm; the scalings D to a unit diagonal, (blocks, width);
the off-diagonal entries: where each block's start, their rows, columns and values; the Gram term R^T diag(w) R: its
rows R, the block's columns they are on, ascending, how many of those are the block's first ones, and sqrt(w),
(blocks, rows of R); how many unknowns have an identity row, the unknowns of weighted rows, their weights; the
regularisations of the unit diagonal; output: the triangles M row by row, with M^T M a block's inverse, and the Schur
complement; the width of a block; the number of threads. Returns how many blocks were not factorised. */
double factorise(const Argument *a)
{
    const long width = a[16].k, count = a[1].count / width;
    if (count == 0)
        return 0;
    Blocks blocks = {
        .routines = {(Lauum)a[0].l[0], (Syrk)a[0].l[1], (Trmm)a[0].l[2]},
        .width = (int)width,
        .scales = a[1].d,
        .starts = a[2].l,
        .i = a[3].i,
        .j = a[4].i,
        .values = a[5].d,
        .rows = a[6].d,
        .columns = a[7].l,
        .gram_columns = a[7].count,
        .gram_rows = a[7].count ? a[6].count / a[7].count : 0,
        .leading = a[8].k,
        .roots = a[9].d,
        .shared = a[10].k,
        .which = a[11].l,
        .which_count = a[11].count,
        .weights = a[12].d,
        .weights_count = a[12].count / count,
        .regularisations = a[13].d,
        .regularisation_count = a[13].count,
        .packed = a[14].d,
    };
    while (blocks.linked * blocks.linked < a[15].count)
        blocks.linked++;
    const long linked = blocks.linked, square = linked * linked;
    const double operations = (double)count * width * width * (width + blocks.gram_rows) / 8;
    long threads = worthwhile_threads(a[17].k < count ? a[17].k : count, operations), failed = 0;
    blocks.sums = calloc(threads * square + 1, sizeof(double));
    if (blocks.sums == 0)
        return (double)count;
    run_in_threads(count, threads, factorise_blocks, &blocks);
    for (long part = 0; part < threads; part++)
        failed += blocks.failed[part];
    for (long row = 0; row < linked; row++)
        for (long column = 0; column <= row; column++) {
            double total = 0.0;
            for (long part = 0; part < threads; part++)
                total += blocks.sums[part * square + row * linked + column];
            a[15].d[row * linked + column] = a[15].d[column * linked + row] = total;
        }
    free(blocks.sums);
    return (double)failed;
}

typedef struct {
    const double *packed, *right;
    const int64_t *blocks;
    double *solution;
    long width;
} Solve;

/* Add the products of M^T M and r for some rows of M, four at a time, so that each is read once, and r a quarter as
often as by single rows. */
static inline const double *four_rows(const double *triangle, long row, const double *right, double *solution)
{
    const double *a = triangle, *b = a + row + 1, *c = b + row + 2, *d = c + row + 3;
    double of_a = 0.0, of_b = 0.0, of_c = 0.0, of_d = 0.0;
    for (long column = 0; column <= row; column++) {
        of_a += a[column] * right[column];
        of_b += b[column] * right[column];
        of_c += c[column] * right[column];
        of_d += d[column] * right[column];
    }
    of_b += b[row + 1] * right[row + 1];
    of_c += c[row + 1] * right[row + 1] + c[row + 2] * right[row + 2];
    of_d += d[row + 1] * right[row + 1] + d[row + 2] * right[row + 2] + d[row + 3] * right[row + 3];
    for (long column = 0; column <= row; column++)
        solution[column] += of_a * a[column] + of_b * b[column] + of_c * c[column] + of_d * d[column];
    solution[row + 1] += of_b * b[row + 1] + of_c * c[row + 1] + of_d * d[row + 1];
    solution[row + 2] += of_c * c[row + 2] + of_d * d[row + 2];
    solution[row + 3] += of_d * d[row + 3];
    return d + row + 4;
}

VECTORISED static void solve_rows(void *context, long first, long last, long part)
{
    const Solve *solve = context;
    const long width = solve->width;
    (void)part;
    for (long index = first; index < last; index++) {
        const double *triangle = solve->packed + solve->blocks[index] * (width * (width + 1) / 2);
        const double *right = solve->right + index * width;
        double *solution = solve->solution + index * width;
        long row = 0;
        for (; row + 4 <= width; row += 4)
            triangle = four_rows(triangle, row, right, solution);
        for (; row < width; row++) {
            double product = 0.0;
            for (long column = 0; column <= row; column++)
                product += triangle[column] * right[column];
            for (long column = 0; column <= row; column++)
                solution[column] += product * triangle[column];
            triangle += row + 1;
        }
    }
}

/* Add M^T M r to solutions for right-hand sides r, each with the triangle M of its block.

Arguments: the triangles; the block of each right-hand side; these, (..., width); output: the solutions, with what is
to be added to them; the width; the number of threads. */
double solve(const Argument *a)
{
    const long width = a[4].k;
    Solve context = {.packed = a[0].d, .blocks = a[1].l, .right = a[2].d, .solution = a[3].d, .width = width};
    run_in_threads(a[1].count, worthwhile_threads(a[5].k, (double)a[1].count * width * width / 2), solve_rows, &context);
    return 0;
}
