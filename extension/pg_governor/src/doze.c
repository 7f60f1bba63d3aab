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

/* Whether the beat is older than it can be while the monitor works: without a queue it is two seconds old at most. */
bool
governor_doze_beat_is_late(void)
{
	return governor_now_us() - (int64) pg_atomic_read_u64(&governor->monitor_beat) >
		GOVERNOR_SILENCE_MS * US_PER_MS;
}

/* Whether a waiter has found that nobody applies the rules that could let somebody in. */
bool
governor_doze_monitor_is_gone(void)
{
	uint64		beat = pg_atomic_read_u64(&governor->monitor_beat);

	return beat != 0 && pg_atomic_read_u64(&governor->silent_beat) == beat;
}

/* Without the monitor the gates are open; under "strict" they stay closed. */
bool
governor_doze_gates_are_open(void)
{
	return governor_doze_monitor_is_gone() && pg_atomic_read_u32(&governor->strict) == 0;
}

/*
 * By a waiter after each of its sleeps.  True for the one waiter that finds the monitor gone: the beat
 * has not changed during GOVERNOR_PROBES sleeps of this process.  A sleep that took much longer than a probe
 * means that this process stood still too, and that the monitor needs its time; the count begins anew.
 */
bool
governor_doze_watch(GovernorBeatWatch *watch)
{
	uint64		beat = pg_atomic_read_u64(&governor->monitor_beat);
	int64		now = governor_now_us();
	int64		slept_us = now - watch->looked_at;

	if (!governor_doze_beat_is_late() || governor_doze_monitor_is_gone() || beat != watch->beat ||
		slept_us > GOVERNOR_PROBES * GOVERNOR_PROBE_MS * US_PER_MS)
	{
		*watch = (GovernorBeatWatch)
		{
			.beat = beat, .looked_at = now
		};
		return false;
	}
	/* Something else has woken it. */
	if (slept_us < GOVERNOR_PROBE_MS * US_PER_MS / 2)
		return false;
	watch->looked_at = now;
	return ++watch->unchanged >= GOVERNOR_PROBES &&
		pg_atomic_exchange_u64(&governor->silent_beat, beat) != beat;
}
