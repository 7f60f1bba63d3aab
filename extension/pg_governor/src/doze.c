/*
 * doze.c
 *		How the monitor falls asleep, and who wakes it.
 *
 * The monitor first says that it sleeps, and then looks for a reason not to.  A
 * session first queues or marks the limits as stale, and then looks whether the
 * monitor sleeps.  Each does this with a full barrier in between, so that at least
 * one of them sees the other.
 *
 * Like gate.c, it needs no server.
 */
#include "compat.h"

#include "delay.h"
#include "doze.h"
#include "gate.h"

/* The monitor works: it sees everything before it sleeps the next time. */
void
governor_doze_end(void)
{
	pg_atomic_exchange_u32(&governor->monitor_asleep, 0);
	GOVERNOR_DELAY();
}

/* Whether the monitor may sleep until its latch is set. */
bool
governor_doze_begin(void)
{
	GOVERNOR_DELAY();
	pg_atomic_exchange_u32(&governor->monitor_asleep, 1);
	GOVERNOR_DELAY();
	return !governor_gate_anyone_queued() && pg_atomic_read_u32(&governor->limits_stale) == 0;
}

/* Whether limits have to be published again. */
bool
governor_doze_take_stale(void)
{
	return pg_atomic_exchange_u32(&governor->limits_stale, 0) != 0;
}

/* A pool was added, with limits of this session's own reading. */
void
governor_doze_stale(void)
{
	pg_atomic_exchange_u32(&governor->limits_stale, 1);
	GOVERNOR_DELAY();
	governor_doze_wake();
}

void
governor_doze_wake(void)
{
	int			monitor = governor->monitor;

	pg_memory_barrier();
	if (monitor != GOVERNOR_NOBODY && pg_atomic_read_u32(&governor->monitor_asleep) != 0)
		SetLatch(&ProcGlobal->allProcs[monitor].procLatch);
}
