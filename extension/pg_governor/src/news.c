/*
 * news.c
 *		Says each kind of news at most once in ten seconds, with how many were held
 *		back since.
 */
#include "compat.h"

#include "clock.h"
#include "news.h"

#define NEWS_EVERY_US UINT64CONST(10000000)

/* Whether to say it now; if not, it is counted. */
bool
governor_news_due(GovernorNews kind, uint64 *held_back)
{
	uint64		now = governor_now_us();
	uint64		last = pg_atomic_read_u64(&governor->news_at[kind]);

	if ((last != 0 && now < last + NEWS_EVERY_US) ||
		!pg_atomic_compare_exchange_u64(&governor->news_at[kind], &last, now))
	{
		pg_atomic_fetch_add_u64(&governor->news_held_back[kind], 1);
		return false;
	}
	*held_back = pg_atomic_exchange_u64(&governor->news_held_back[kind], 0);
	return true;
}

/* A part of ereport: how many more there were. */
int
governor_news_detail(uint64 held_back)
{
	if (held_back == 0)
		return 0;
	return errdetail("%llu more since this was last logged.", (unsigned long long) held_back);
}
