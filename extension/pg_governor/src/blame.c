/*
 * blame.c
 *		When a session is a culprit.  Like gate.c, it needs no server.
 *
 * It is one if it keeps more than its own slot, at least half of those of a gate at which somebody queues, and
 * has done so for some time.  Whoever only works for long keeps one slot, beside which long_time lets another session in,
 * so that its cancel would help nobody.
 */
#include "culprit.h"

/* With its own slot alone its end helps nobody. */
#define LEAST_SLOTS 2

/* With fewer, the end of it would free the smaller part of what others wait for. */
#define LEAST_SHARE 0.5

bool
governor_culprit_is(GovernorBlame blame, int64 needed_us)
{
	return blame.waiters > 0 && blame.slots >= LEAST_SLOTS && blame.slots >= LEAST_SHARE * blame.taken &&
		blame.for_us >= needed_us;
}
