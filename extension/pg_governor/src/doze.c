/*
 * doze.c
 *		How the monitor falls asleep, and who wakes it.
 *
 * The monitor first says that it sleeps, and then looks for a reason not to.  A
 * session first queues, and then looks whether the monitor sleeps.  Each does this
 * with a full barrier in between, so that at least one of them sees the other.
 *
 * Like gate.c, it needs no server.
 */
#include "compat.h"

#include "clock.h"
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
	return !governor_gate_anyone_queued();
}

void
governor_doze_wake(void)
{
	int			monitor = governor->monitor;

	pg_memory_barrier();
	if (monitor != GOVERNOR_NOBODY && pg_atomic_read_u32(&governor->monitor_asleep) != 0)
		SetLatch(&ProcGlobal->allProcs[monitor].procLatch);
}

/*
 * Whether nobody applies the rules that could let a waiter in.  Without a queue the
 * monitor's beat is two seconds old at most.
 */
bool
governor_doze_monitor_is_silent(void)
{
	return governor_now_us() - (int64) pg_atomic_read_u64(&governor->monitor_beat) >
		GOVERNOR_SILENCE_MS * US_PER_MS;
}
