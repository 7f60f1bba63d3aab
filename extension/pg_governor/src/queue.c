/*
 * queue.c
 *		The queue before a gate: its links, its order, and what is counted of waits.
 *		Everything here is under the gate's lock.
 *
 * Each role of a pool has a queue of its own while role_share is below 100.
 */
#include "compat.h"

#include "clock.h"
#include "queue.h"
#include "share.h"

static void find_oldest(GovernorGate *gate);

void
governor_queue_append(GovernorGate *gate, int session, int role)
{
	GovernorSession *self = governor_session_at(session);

	self->queued_since = governor_now_us();
	self->next = GOVERNOR_NOBODY;
	self->previous = gate->tails[role];
	if (gate->tails[role] == GOVERNOR_NOBODY)
		gate->heads[role] = session;
	else
		governor_session_at(gate->tails[role])->next = session;
	gate->tails[role] = session;
	gate->role_queued[role]++;
	if (gate->waiting_roles == 0)
		pg_atomic_write_u64(&gate->head_since, self->queued_since);
	gate->waiting_roles |= UINT32_C(1) << role;
}

void
governor_queue_remove(GovernorGate *gate, int session, int role)
{
	GovernorSession *self = governor_session_at(session);

	if (self->next == GOVERNOR_NOBODY)
		gate->tails[role] = self->previous;
	else
		governor_session_at(self->next)->previous = self->previous;
	if (self->previous != GOVERNOR_NOBODY)
		governor_session_at(self->previous)->next = self->next;
	else
		gate->heads[role] = self->next;
	gate->role_queued[role]--;
	if (gate->heads[role] == GOVERNOR_NOBODY)
		gate->waiting_roles &= ~(UINT32_C(1) << role);
	if (self->previous == GOVERNOR_NOBODY)
		find_oldest(gate);
}

static void
find_oldest(GovernorGate *gate)
{
	uint64		oldest = PG_UINT64_MAX;

	for (int role = 0; role < GOVERNOR_ROLES; role++)
		if (gate->waiting_roles & (UINT32_C(1) << role))
			oldest = Min(oldest, governor_session_at(gate->heads[role])->queued_since);
	if (oldest != PG_UINT64_MAX)
		pg_atomic_write_u64(&gate->head_since, oldest);
}

/* Who is next, by role and by time, without regard to limits. */
int
governor_queue_first(GovernorGate *gate)
{
	int			best = GOVERNOR_NOBODY;
	uint32		best_taken = 0;

	if (gate->waiting_roles == UINT32_C(1) << GOVERNOR_ROLE_ANY)
		return gate->heads[GOVERNOR_ROLE_ANY];
	for (int role = 0; role < GOVERNOR_ROLES; role++)
	{
		int			head = gate->heads[role];
		uint32		taken = governor_share_working(gate, role);

		if ((gate->waiting_roles & (UINT32_C(1) << role)) == 0)
			continue;
		if (best == GOVERNOR_NOBODY || taken < best_taken ||
			(taken == best_taken && governor_session_at(head)->queued_since <
			 governor_session_at(best)->queued_since))
		{
			best = head;
			best_taken = taken;
		}
	}
	return best;
}

void
governor_queue_count_wait(GovernorGateStats *stats, uint64 wait_us)
{
	uint64		wait_ms = wait_us / 1000;
	int			bucket = 0;

	while (wait_ms > 0 && bucket < GOVERNOR_WAIT_BUCKETS - 1)
	{
		wait_ms >>= 1;
		bucket++;
	}
	stats->wait_buckets[bucket]++;
	stats->waits++;
	stats->wait_us_total += wait_us;
	stats->wait_us_max = Max(stats->wait_us_max, wait_us);
}
