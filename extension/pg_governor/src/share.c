/*
 * share.c
 *		The limit over all pools, and the share of one role in a gate.
 *
 * Who takes a slot is counted here only while there is such a bound; the flags
 * in its word say where, so that a bound can be set and removed at any time.
 * Class long is outside of the total: there, what already runs cannot be stopped,
 * and must not shut out everything else.
 */
#include "compat.h"

#include "delay.h"
#include "gate.h"
#include "share.h"
#include "word.h"

static bool raise_below(pg_atomic_uint32 *counter, uint32 bound);

bool
governor_share_is_limited(void)
{
	return pg_atomic_read_u32(&governor->total_capacity) > 0;
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
		if (!raise_below(&gate->role_taken[role], role_slots))
			return false;
		*flags |= GOVERNOR_ROLED;
	}
	GOVERNOR_DELAY();
	if (total > 0 && governor_class_of_gate(gate_index) != GOVERNOR_LONG)
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
	if (governor_share_is_limited() && governor_class_of_gate(gate_index) != GOVERNOR_LONG)
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

/* Whether the hard maximum over all pools is reached. */
bool
governor_share_is_beyond(void)
{
	uint32		hard_max = pg_atomic_read_u32(&governor->total_hard_max);

	return hard_max > 0 && pg_atomic_read_u32(&governor->total_taken) >= hard_max;
}

/*
 * A slot over all pools was released: gives it to a gate whose waiters had only
 * that one to wait for, all gates in turn.
 */
void
governor_share_hand_on(void)
{
	int			gates = governor_gate_count();
	uint32		turn;

	if (!governor_share_is_limited())
		return;
	turn = pg_atomic_fetch_add_u32(&governor->total_turn, 1);
	for (int i = 0; i < gates; i++)
	{
		int			gate = (turn + i) % gates;

		if (pg_atomic_read_u32(&governor->total_taken) >=
			pg_atomic_read_u32(&governor->total_capacity))
			return;
		if (governor_gate_occupancy(governor_gate_at(gate)).queued > 0)
			governor_gate_admit_free(gate);
	}
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
