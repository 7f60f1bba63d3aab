/*
 * advise.c
 *		What limit a sampled load suggests.  Like gate.c, it needs no server.
 *
 * A session keeps a core busy for the share of its time in which it uses the CPU.
 * So cores ÷ share sessions keep all cores busy; twice as many make sure of it.
 * Waits for locks of other sessions do not count as time off the CPU: with fewer
 * sessions they are shorter.  The bounds are those within which test/evenness and the
 * pool study found the best throughput: two sessions for each core with queries, eight
 * to sixteen with what commits.  That is often off the CPU for a moment, and a core that
 * falls asleep costs more than one that has a queue.
 */
#include "compat.h"

#include <math.h>

#include "advice.h"

/* From this share of the sampled time on, waits for locks are the reason. */
#define LOCKS_SHARE 0.2

/* Below this share of the sampled time on the CPU, other waits are. */
#define CPU_SHARE 0.5

GovernorAdvice
governor_advise(const GovernorSample *sample, GovernorClass class, int cores)
{
	double		on_cpu = governor_advice_share(sample->on_cpu + sample->on_locks, sample->sessions);
	bool		commits = class == GOVERNOR_TRANSACTION || class == GOVERNOR_AUTOCOMMIT;
	int			least = (commits ? 8 : 2) * cores;
	int			most = (commits ? 16 : 2) * cores;
	GovernorAdvice advice = {.verdict = GOVERNOR_ADVICE_CPU};

	if (sample->looks < GOVERNOR_ADVICE_LOOKS_MIN)
	{
		advice.verdict = GOVERNOR_ADVICE_TOO_SHORT;
		return advice;
	}
	advice.limit = most;
	if (on_cpu > 0)
		advice.limit = Max(least, Min(most, (int) ceil(2 * cores / on_cpu)));
	if (sample->sessions_max <= (uint32) advice.limit)
	{
		advice.verdict = GOVERNOR_ADVICE_NO_LIMIT;
		advice.limit = 0;
	}
	else if (governor_advice_share(sample->on_locks, sample->sessions) >= LOCKS_SHARE)
		advice.verdict = GOVERNOR_ADVICE_LOCKS;
	else if (on_cpu < CPU_SHARE)
		advice.verdict = GOVERNOR_ADVICE_WAITS;
	return advice;
}

double
governor_advice_share(uint64 part, uint64 whole)
{
	return whole == 0 ? 0 : (double) part / whole;
}
