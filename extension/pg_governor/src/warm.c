/*
 * warm.c
 *		The habits of this session, and what follows from them.
 *
 * A session that is let in has cold caches, and the next transactions of its turn pay
 * for that.  They also make waits uneven: with n transactions in a turn the longest
 * wait is about n times the mean.  So a turn is one transaction, that is fifo, until
 * the queue is long: then it grows with the queue, up to "unevenness".
 *
 * Everybody who queues is to have a turn within three quarters of pass_over_max.
 * The last quarter is for transactions that outlast their session's time: where the
 * head of the queue reaches that age, turns end at once, and cold caches are all that
 * is left.
 */
#include "compat.h"

#include "clock.h"
#include "gate.h"
#include "session.h"
#include "settings.h"
#include "warm.h"

/*
 * A session that usually stays away for longer than this, and for longer than
 * its transactions last, lets go at once: its slot would be idle for most of
 * the time.  So does one of which nothing is known yet.
 */
#define RETURN_GAP_MAX_US 2000
#define RETURN_GAP_UNKNOWN (-1)

/* A turn has a transaction for each so many sessions that queue for a slot, and one at least. */
#define FIFO_QUEUE_PER_SLOT 16

/* A gap counts at most this much, so that one long pause is soon forgotten. */
#define RETURN_GAP_COUNTED_US 20000

static int64 warm_until = 0;
static int	transactions_left = 0;
static int64 finished_at = 0;
static int64 return_gap_us = RETURN_GAP_UNKNOWN;
static int64 service_us = 0;

/* How long the session stayed away. */
void
governor_warm_transaction_begins(void)
{
	int64		gap_us;

	if (finished_at == 0)
		return;
	gap_us = Min(governor_now_us() - finished_at, RETURN_GAP_COUNTED_US);
	if (return_gap_us == RETURN_GAP_UNKNOWN)
		return_gap_us = gap_us;
	else
		return_gap_us += (gap_us - return_gap_us) / 4;
	finished_at = 0;
}

void
governor_warm_turn_begins(int gate_index)
{
	GovernorOccupancy occupancy = governor_gate_occupancy(governor_gate_at(gate_index));
	uint32		slots = Max(1, occupancy.taken);

	transactions_left = Min((uint32) governor_unevenness, occupancy.queued / (slots * FIFO_QUEUE_PER_SLOT));
	if (transactions_left <= 1)
		return;
	warm_until = governor_now_us() +
		governor_pass_over_max_ms * INT64CONST(750) * slots / Max(1, occupancy.queued);
}

void
governor_warm_goes_on(void)
{
	transactions_left--;
}

/*
 * The session has ended a transaction at this gate: does it keep its slot?  Habits are kept while somebody queues.
 * Otherwise they are forgotten, and a session of which nothing is known lets go: when a queue forms, none wastes a slot by
 * habits that it had once, and a transaction without a queue reads no clock.
 */
bool
governor_warm_stays(int gate_index)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	GovernorOccupancy occupancy = governor_gate_occupancy(gate);

	if (occupancy.queued == 0)
	{
		finished_at = 0;
		return_gap_us = RETURN_GAP_UNKNOWN;
		return false;
	}
	finished_at = governor_now_us();
	service_us += (finished_at - (int64) governor_my_session->since - service_us) / 4;
	return transactions_left > 1 &&
		pg_atomic_read_u32(&governor_pool_of_gate(gate_index)->policy) == GOVERNOR_THROUGHPUT &&
		finished_at < warm_until &&
		return_gap_us != RETURN_GAP_UNKNOWN &&
		return_gap_us <= Max(RETURN_GAP_MAX_US, service_us) &&
		finished_at - (int64) pg_atomic_read_u64(&gate->head_since) <=
		governor_pass_over_max_ms * US_PER_MS &&
		occupancy.taken <= pg_atomic_read_u32(&gate->capacity);
}
