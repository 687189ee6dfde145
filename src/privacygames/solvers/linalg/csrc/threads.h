/* Division of a loop among POSIX threads that live as long as the loop: a fork or a second caller finds none of them. */
#ifndef PRIVACYGAMES_THREADS_H
#define PRIVACYGAMES_THREADS_H

#define MAX_THREADS 64

/* Work on the items first to last; part is the number of their range. */
typedef void (*Work)(void *context, long first, long last, long part);

/* How many of so many threads are worth starting for this many elementary operations (array entries to be read). */
long worthwhile_threads(long threads, double operations);

/* Call work for even ranges of 0 to count, one for each thread; returns when all have ended. */
void run_in_threads(long count, long threads, Work work, void *context);

#endif
