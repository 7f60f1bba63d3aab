/*
 * waitkind.c
 *		What the wait event of a session says about its use of the CPU, and from
 *		when on a session that waits does not count against the limit.
 */
#include "waitkind.h"

#include "storage/lwlock.h"

#include "clock.h"
#include "settings.h"

/* A wait for a lock counts for so many times longer: short ones are what a limit is for. */
#define LOCK_WAIT_FACTOR 5

GovernorWaitKind
governor_wait_kind(uint32 wait_event_info)
{
	switch (wait_event_info & 0xFF000000)
	{
		case PG_WAIT_LOCK:
			return GOVERNOR_WAIT_LOCK;
		case PG_WAIT_CLIENT:
		case PG_WAIT_TIMEOUT:
		case PG_WAIT_EXTENSION:
			return GOVERNOR_WAIT_OUTSIDE;
		case PG_WAIT_IPC:
			return wait_event_info == WAIT_EVENT_SYNC_REP ? GOVERNOR_WAIT_STANDBY : GOVERNOR_WAIT_NOT;
		case PG_WAIT_IO:
			return wait_event_info == WAIT_EVENT_WAL_SYNC ? GOVERNOR_WAIT_FLUSH : GOVERNOR_WAIT_NOT;
		case PG_WAIT_LWLOCK:
			return wait_event_info == (PG_WAIT_LWLOCK | WALWriteLock->tranche) ?
				GOVERNOR_WAIT_FLUSH : GOVERNOR_WAIT_NOT;
		default:
			return GOVERNOR_WAIT_NOT;
	}
}

bool
governor_wait_is_discounted(GovernorWaitKind kind, int64 waiting_us)
{
	if (governor_discount_time_ms == 0)
		return false;
	switch (kind)
	{
		case GOVERNOR_WAIT_STANDBY:
			return true;
		case GOVERNOR_WAIT_OUTSIDE:
			return waiting_us >= governor_discount_time_ms * US_PER_MS;
		case GOVERNOR_WAIT_LOCK:
			return waiting_us >= LOCK_WAIT_FACTOR * governor_discount_time_ms * US_PER_MS;
		default:
			return false;
	}
}
