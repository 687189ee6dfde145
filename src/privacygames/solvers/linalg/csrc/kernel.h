/* What a kernel is: a C function of checked arguments, which runs without Python's global interpreter lock. */
#ifndef PRIVACYGAMES_KERNEL_H
#define PRIVACYGAMES_KERNEL_H

#include <stdint.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "marks are read eight at a time, the first in the lowest byte; without this module NumPy does the work"
#endif

#define MAX_ARGUMENTS 24

/* The vectorised variants of a function are chosen when the library is loaded, for the processor it runs on. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define VECTORISED __attribute__((target_clones("default", "arch=haswell", "arch=skylake-avx512")))
#else
#define VECTORISED
#endif

/* An argument: a C-contiguous array with its number of entries, or a number. */
typedef struct {
    union {
        double *d;
        float *f;
        int32_t *i;
        int64_t *l;
        uint8_t *b;
        void *start;
        double x;
        long k;
    };
    long count;
} Argument;

/* A kernel returns a number, or nothing of interest; see module.c for the letters of its arguments. */
typedef double (*Kernel)(const Argument *arguments);

double factorise(const Argument *arguments);
double solve(const Argument *arguments);
double ratio_slacks(const Argument *arguments);
double ratio_adjoint(const Argument *arguments);
double ratio_hessian(const Argument *arguments);
double mark_ratios(const Argument *arguments);
double list_ratios(const Argument *arguments);
double inherit_duals(const Argument *arguments);
double cancel_opposites(const Argument *arguments);
double extension_bounds(const Argument *arguments);
double triangle_inequality_holds(const Argument *arguments);
double divide(const Argument *arguments);
double axpy(const Argument *arguments);
double least_growth(const Argument *arguments);
double direction_change(const Argument *arguments);
double shifted_change(const Argument *arguments);
double mehrotra_change(const Argument *arguments);
double gondzio_change(const Argument *arguments);
double complementarity_after(const Argument *arguments);
double blocking_ratios(const Argument *arguments);
double step_ratios(const Argument *arguments);

#endif
