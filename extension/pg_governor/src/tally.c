/*
 * tally.c
 *		Counts sessions by gate, while they come and go.  Like gate.c, it needs no
 *		server.
 *
 * A session's pool and word are each read once: they may change, also to no pool
 * and no gate, between the check of an index and its use.
 */
#include "compat.h"

#include "delay.h"
#include "tally.h"
#include "word.h"

static void count_admissions(GovernorTally *tallies, int gates, GovernorSession *session);

/* One pass over all sessions, for all gates. */
void
governor_tally_sessions(GovernorTally *tallies, int gates)
{
	for (int i = 0; i < governor->session_count; i++)
	{
		GovernorSession *session = governor_session_at(i);
		uint64		word = pg_atomic_read_u64(governor_word_at(i));
		int			gate = governor_word_gate(word);

		count_admissions(tallies, gates, session);
		GOVERNOR_DELAY();
		if (gate < 0 || gate >= gates)
			continue;
		switch (governor_word_state(word))
		{
			case GOVERNOR_RUNNING:
				tallies[gate].running++;
				tallies[gate].discounted += session->discounted;
				tallies[gate].long_ones += session->is_long;
				break;
			case GOVERNOR_WARM:
				tallies[gate].warm++;
				break;
			case GOVERNOR_RESERVED:
				tallies[gate].reserved++;
				break;
			default:
				break;
		}
	}
}

/* What the session has counted itself belongs to its pool. */
static void
count_admissions(GovernorTally *tallies, int gates, GovernorSession *session)
{
	int			pool = *(volatile int *) &session->pool;

	GOVERNOR_DELAY();
	for (int class = 0; class < GOVERNOR_CLASSES; class++)
	{
		int			gate = pool * GOVERNOR_CLASSES + class;

		if (pool < 0 || gate >= gates)
			continue;
		tallies[gate].admits_free += pg_atomic_read_u64(&session->admits_free[class]);
		tallies[gate].admits_again += pg_atomic_read_u64(&session->admits_again[class]);
	}
}
