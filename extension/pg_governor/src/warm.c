/*
 * warm.c
 *		The habits of this session, and what follows from them.
 *
 * A session goes on for the time that lets everybody who queues have a turn
 * within three quarters of pass_over_max, but for warm_time at most.  The last
 * quarter is for transactions that outlast their session's time: where the head
 * of the queue reaches that age, turns end at once, and cold caches are all
 * that is left.
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

/* By then a turn has paid for what its cold caches cost many times over. */
#define WARM_TRANSACTIONS_MAX 32

/* A gap counts at most this much, so that one long pause is soon forgotten. */
#define RETURN_GAP_COUNTED_US 20000

static int64 warm_until = 0;
static int	warm_transactions = 0;
static int64 finished_at = 0;
static int64 return_gap_us = RETURN_GAP_UNKNOWN;
static int64 service_us = 0;
static bool last_was_long = false;

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

/* How long the transaction has run, and whether it was in class long. */
void
governor_warm_transaction_ends(int gate)
{
	int64		took_us;

	finished_at = governor_now_us();
	took_us = finished_at - (int64) governor_my_session->since;
	service_us += (took_us - service_us) / 4;
	last_was_long = governor_class_of_gate(gate) == GOVERNOR_LONG &&
		took_us >= governor_long_time_ms * US_PER_MS;
}

/*
 * Whether the next transaction is expected to be long: the last one was.  It
 * then queues for class long at once, where it delays no short one.
 */
bool
governor_warm_is_long(void)
{
	return last_was_long && governor_long_time_ms > 0;
}

void
governor_warm_turn_begins(int gate_index)
{
	GovernorOccupancy occupancy = governor_gate_occupancy(governor_gate_at(gate_index));
	int64		share_us = governor_warm_time_ms * US_PER_MS;

	if (occupancy.queued > 0)
		share_us = Min(share_us, governor_pass_over_max_ms * INT64CONST(750) *
					   occupancy.taken / occupancy.queued);
	warm_until = governor_now_us() + share_us;
	warm_transactions = 0;
}

void
governor_warm_goes_on(void)
{
	warm_transactions++;
}

/* The session has ended a transaction at this gate: does it keep its slot? */
bool
governor_warm_stays(int gate_index)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	GovernorOccupancy occupancy = governor_gate_occupancy(gate);

	/*
	 * Asked only when somebody queues, but habits are kept always: when a queue
	 * forms, a session that learned only then that it stays away would waste a
	 * slot first.
	 */
	return occupancy.queued > 0 &&
		governor_policy == GOVERNOR_THROUGHPUT &&
		finished_at < warm_until &&
		warm_transactions < WARM_TRANSACTIONS_MAX &&
		return_gap_us != RETURN_GAP_UNKNOWN &&
		return_gap_us <= Max(RETURN_GAP_MAX_US, service_us) &&
		finished_at - (int64) pg_atomic_read_u64(&gate->head_since) <=
		governor_pass_over_max_ms * US_PER_MS &&
		occupancy.taken <= pg_atomic_read_u32(&gate->capacity);
}
