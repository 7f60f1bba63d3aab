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
int			governor_stall_time_ms = 2;
int			governor_discount_time_ms = 1;

MemoryContext TopMemoryContext;
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

int
errdetail(const char *format,...)
{
	return 0;
}
