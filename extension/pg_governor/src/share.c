/*
 * share.c
 *		The limit over all pools, and the share of one role in a gate.
 *
 * A role's share is of the slots that the gate has at the time, and what of the role is
 * discounted does not count in it: as with the limit itself, who does not work keeps
 * nobody out.
 *
 * Who takes a slot is counted here only while there is such a bound; the flags
 * in its word say where, so that a bound can be set and removed at any time.
 *
 * A pool may use what the others leave of the total.  While several pools queue for
 * it, each slot that is released goes to the one with the fewest for its weight, so
 * that what was borrowed comes back as transactions end; but who has queued for
 * pass_over_max is next, whatever its pool's weight.
 */
#include "compat.h"

#include "clock.h"
#include "delay.h"
#include "gate.h"
#include "settings.h"
#include "share.h"
#include "word.h"

static int	next_gate(const uint64 *passed_over);
static double pool_load(int pool);
static bool raise_below(pg_atomic_uint32 *counter, uint32 bound);

bool
governor_share_is_limited(void)
{
	return pg_atomic_read_u32(&governor->total_capacity) > 0;
}

/* How many of so many slots, or places, one role may have; one at least.  0 = any. */
uint32
governor_share_of_role(uint32 slots)
{
	return governor_role_share < 100 ? Max(1, (uint64) slots * governor_role_share / 100) : 0;
}

/* Slots of a role that are not discounted. */
uint32
governor_share_working(GovernorGate *gate, int role)
{
	uint32		taken = pg_atomic_read_u32(&gate->role_taken[role]);

	return taken - Min(taken, pg_atomic_read_u32(&gate->role_discounted[role]));
}

/* Counts a slot, if both bounds allow it. */
bool
governor_share_take(int gate_index, int role, uint64 *flags)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	uint32		role_slots = pg_atomic_read_u32(&gate->role_slots);
	uint32		total = pg_atomic_read_u32(&governor->total_capacity);

	*flags = 0;
	if (role_slots > 0 && role != GOVERNOR_ROLE_ANY)
	{
		if (!raise_below(&gate->role_taken[role],
						 role_slots + pg_atomic_read_u32(&gate->role_discounted[role])))
			return false;
		*flags |= GOVERNOR_ROLED;
	}
	GOVERNOR_DELAY();
	if (total > 0)
	{
		if (!raise_below(&governor->total_taken, total))
		{
			governor_share_release(gate_index, role, *flags);
			*flags = 0;
			return false;
		}
		*flags |= GOVERNOR_COUNTED;
	}
	GOVERNOR_DELAY();
	return true;
}

/* Counts a slot beyond the bounds.  Returns the flags. */
uint64
governor_share_force(int gate_index, int role)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	uint64		flags = 0;

	if (pg_atomic_read_u32(&gate->role_slots) > 0 && role != GOVERNOR_ROLE_ANY)
	{
		pg_atomic_fetch_add_u32(&gate->role_taken[role], 1);
		flags |= GOVERNOR_ROLED;
	}
	if (governor_share_is_limited())
	{
		pg_atomic_fetch_add_u32(&governor->total_taken, 1);
		flags |= GOVERNOR_COUNTED;
	}
	GOVERNOR_DELAY();
	return flags;
}

void
governor_share_release(int gate_index, int role, uint64 flags)
{
	if (flags & GOVERNOR_ROLED)
		pg_atomic_fetch_sub_u32(&governor_gate_at(gate_index)->role_taken[role], 1);
	GOVERNOR_DELAY();
	if (flags & GOVERNOR_COUNTED)
		pg_atomic_fetch_sub_u32(&governor->total_taken, 1);
}

/* Whether a stall lets nobody in over all pools. */
bool
governor_share_is_at_ceiling(void)
{
	uint32		ceiling = pg_atomic_read_u32(&governor->total_ceiling);

	return ceiling > 0 && pg_atomic_read_u32(&governor->total_taken) >= ceiling;
}

/* Gives what is free of the total to those who queue. */
void
governor_share_hand_on(void)
{
	uint64		passed_over[(GOVERNOR_MAX_POOLS * GOVERNOR_CLASSES + 63) / 64] = {0};
	int			gate;

	while (governor_share_is_limited() &&
		   pg_atomic_read_u32(&governor->total_taken) < pg_atomic_read_u32(&governor->total_capacity) &&
		   (gate = next_gate(passed_over)) != GOVERNOR_NOBODY)
		if (!governor_gate_admit_one(gate))
			passed_over[gate / 64] |= UINT64CONST(1) << gate % 64;
}

/* Whose turn it is, among the gates with a queue. */
static int
next_gate(const uint64 *passed_over)
{
	uint64		now = governor_now_us();
	uint64		best_since = 0;
	double		best_load = 0;
	int			best = GOVERNOR_NOBODY;

	for (int gate = 0; gate < governor_gate_count(); gate++)
	{
		GovernorGate *at = governor_gate_at(gate);
		uint64		since = pg_atomic_read_u64(&at->head_since);
		double		load;

		if (governor_gate_occupancy(at).queued == 0 || (passed_over[gate / 64] >> gate % 64 & 1) != 0)
			continue;
		load = since + governor_pass_over_max_ms * US_PER_MS < now ? -1 : pool_load(gate / GOVERNOR_CLASSES);
		if (best == GOVERNOR_NOBODY || load < best_load || (load == best_load && since < best_since))
		{
			best = gate;
			best_load = load;
			best_since = since;
		}
	}
	return best;
}

/* Slots that the pool has now, for its weight. */
static double
pool_load(int pool)
{
	uint32		taken = 0;

	for (int class = 0; class < GOVERNOR_CLASSES; class++)
		taken += governor_gate_occupancy(&governor->pools[pool].gates[class]).taken;
	return (double) taken / Max(1, pg_atomic_read_u32(&governor->pools[pool].weight));
}

static bool
raise_below(pg_atomic_uint32 *counter, uint32 bound)
{
	uint32		seen = pg_atomic_read_u32(counter);

	do
	{
		if (seen >= bound)
			return false;
	} while (!pg_atomic_compare_exchange_u32(counter, &seen, seen + 1));
	return true;
}
