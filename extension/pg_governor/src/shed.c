/*
 * shed.c
 *		Which sessions are refused because the queue is too slow for them.  Like
 *		gate.c, it needs no server.
 *
 * Policy "codel" is the rule of RFC 8289, applied to the wait of the first in the
 * queue: once it has been above a target for an interval, one is refused, and the
 * next ones after shorter and shorter times, until the wait is below the target.
 */
#include "compat.h"

#include <math.h>

#include "shed.h"

/* The pace is measured over this time at least. */
#define PACE_OVER_US 200000

/* Whether the first in the queue is to be refused now. */
bool
governor_shed_due(GovernorCodel *codel, int64 now, int64 wait_us, int64 target_us, int64 interval_us)
{
	if (wait_us < target_us)
	{
		memset(codel, 0, sizeof(*codel));
		return false;
	}
	if (codel->first_above_at == 0)
	{
		codel->first_above_at = now;
		codel->shed_at = now + interval_us;
	}
	if (now < codel->shed_at)
		return false;
	codel->shed++;
	codel->shed_at = now + (int64) (interval_us / sqrt(codel->shed));
	return true;
}

/* The time between two slots that were released while somebody queued; 0 = not known. */
uint32
governor_shed_pace(GovernorPace *pace, int64 now, uint64 progress, uint32 before_us)
{
	uint64		released = progress - pace->progress;
	double		place_us;

	if (pace->progress_at == 0)
	{
		pace->progress = progress;
		pace->progress_at = now;
		return before_us;
	}
	if (now - pace->progress_at < PACE_OVER_US)
		return before_us;
	place_us = now - pace->progress_at;
	/* Nothing released yet: it takes at least so long, and the measurement goes on. */
	if (released == 0)
		return (uint32) Min(Max(before_us, place_us), 1e9);
	place_us /= released;
	pace->progress = progress;
	pace->progress_at = now;
	if (before_us > 0)
		place_us = (place_us + before_us) / 2;
	return (uint32) Min(place_us, 1e9) + 1;
}

/*
 * For how long a transaction has its slot: of what comes and goes at a pace, as many are there as come while
 * one of them is (Little's law).  So no transaction has to read a clock.
 */
uint32
governor_shed_service(uint32 working, uint32 place_us, uint32 before_us)
{
	double		service_us = (double) Max(1, working) * place_us;

	if (before_us > 0)
		service_us = before_us + (service_us - before_us) / 8;
	return (uint32) Min(service_us, 1e9);
}
