#include "threads.h"

#include <pthread.h>

/* Operations that take about as long as starting a thread, some 20 microseconds. */
#define OPERATIONS_PER_THREAD 100000.0

typedef struct {
    Work work;
    void *context;
    long first, last, part;
} Range;

static void *work_on_range(void *argument)
{
    Range *range = argument;
    range->work(range->context, range->first, range->last, range->part);
    return 0;
}

long worthwhile_threads(long threads, double operations)
{
    double most = operations / OPERATIONS_PER_THREAD;
    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    return most < threads ? (most < 1 ? 1 : (long)most) : threads;
}

void run_in_threads(long count, long threads, Work work, void *context)
{
    pthread_t others[MAX_THREADS];
    int started[MAX_THREADS];
    Range ranges[MAX_THREADS];
    for (long part = 0; part < threads; part++)
        ranges[part] = (Range){work, context, count * part / threads, count * (part + 1) / threads, part};
    for (long part = 1; part < threads; part++)
        started[part] = pthread_create(&others[part], 0, work_on_range, &ranges[part]) == 0;
    work_on_range(&ranges[0]);
    for (long part = 1; part < threads; part++) {
        if (started[part])
            pthread_join(others[part], 0);
        else /* the system has no thread to give: the caller does its work */
            work_on_range(&ranges[part]);
    }
}
