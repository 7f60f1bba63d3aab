/*
 * procs.c
 *		Stands in for what look.c needs of a server: processes that hold no lock of
 *		the lock table, memory, settings.
 */
#include "server.h"

#include <stdlib.h>

#include "../../src/settings.h"
#include "storage/lwlock.h"
#include "utils/memutils.h"

/* Short, so that the rules move what the storm's sessions do. */
int			governor_long_time_ms = 1;
int			governor_long_elapsed_time_ms = 3;
int			governor_long_limit = -1;
int			governor_stall_time_ms = 2;
int			governor_discount_time_ms = 1;
int			governor_idle_holder_timeout_ms = 0;
int			governor_codel_target_ms = 1;
int			governor_codel_interval_ms = 2;
double		governor_overload_factor = 8;
bool		governor_find_limit = false;
double		governor_runnable_per_cpu = 3;
double		governor_parallel_weight = 1;

MemoryContext TopMemoryContext;
PGPROC	   *MyProc;
LWLockPadded *MainLWLockArray;

void
server_procs_start(void)
{
	MainLWLockArray = server_memory(NUM_FIXED_LWLOCKS * sizeof(LWLockPadded));
}

void *
MemoryContextAllocZero(MemoryContext context, Size size)
{
	return calloc(1, size);
}

#if PG_VERSION_NUM < 160000
bool
SHMQueueEmpty(const SHM_QUEUE *queue)
{
	return true;
}

Pointer
SHMQueueNext(const SHM_QUEUE *queue, const SHM_QUEUE *current, Size offset)
{
	return NULL;
}
#endif

/* Lists of locks are empty: nobody asks. */
bool
DoLockModesConflict(LOCKMODE one, LOCKMODE other)
{
	return true;
}

void
pg_qsort(void *base, size_t count, size_t size, int (*compare) (const void *, const void *))
{
	qsort(base, count, size, compare);
}

int
errdetail(const char *format,...)
{
	return 0;
}
