/*
 * deadline.c
 *		Whether who comes to a queue can still be done in time.  Like gate.c, it needs
 *		no server.
 *
 * Work that cannot be done in time is refused before it begins: a server that carries it half way
 * and then throws it away has less time for what can be done.  Without a measured wait nobody is
 * refused.
 */
#include "deadline.h"

#define US_PER_MS INT64CONST(1000)

static int64 ms_from(int64 us);

/* The earlier one holds; what has passed already is a deadline, too. */
void
governor_deadline_add(int64 *deadline_ms, int64 other_ms)
{
	*deadline_ms = Max(0, Min(*deadline_ms, other_ms));
}

GovernorVerdict
governor_deadline_judge(GovernorDeadlines deadlines, GovernorForecast forecast)
{
	int64		wait_ms = ms_from(forecast.wait_us);
	int64		done_ms = ms_from(forecast.wait_us + forecast.service_us);
	int64		slot_late = deadlines.slot_ms == GOVERNOR_NO_DEADLINE ? 0 : wait_ms - deadlines.slot_ms;
	int64		done_late = deadlines.done_ms == GOVERNOR_NO_DEADLINE ? 0 : done_ms - deadlines.done_ms;
	GovernorVerdict verdict = {0};

	if (forecast.wait_us <= 0 || (slot_late <= 0 && done_late <= 0))
		return verdict;
	verdict.too_late = true;
	verdict.by_work = done_late > slot_late;
	verdict.deadline_ms = verdict.by_work ? deadlines.done_ms : deadlines.slot_ms;
	verdict.needed_ms = verdict.by_work ? done_ms : wait_ms;
	/* Nothing is gained by waiting for longer than until the queue is empty. */
	verdict.retry_after_ms = Max(1, Min(Max(slot_late, done_late), wait_ms));
	return verdict;
}

static int64
ms_from(int64 us)
{
	return (us + US_PER_MS - 1) / US_PER_MS;
}
