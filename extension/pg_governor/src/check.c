/*
 * check.c
 *		Compares every counter of slots with the sessions' words, and repairs it.
 *
 * The words are read twice, and the counter is read in between.  If both readings
 * of the words are equal (a word's generation changes with it), all words had these
 * values at the moment when the counter was read.  If none of them said ENTERING or
 * LEAVING, no other session was changing the counter either, and a difference is an
 * error.  The monitor itself makes no changes while it checks.
 */
#include "compat.h"

#include "check.h"
#include "delay.h"
#include "gate.h"
#include "word.h"

#define ALL_GATES (-1)

/* What the words say. */
typedef struct Tally
{
	uint32		taken;			/* RUNNING and WARM */
	uint32		queued;
	uint32		counted;		/* over all pools */
	uint32		reserved;
	uint32		by_role[GOVERNOR_ROLES];
	bool		in_change;
	uint64		mark;			/* differs if any word has changed */
} Tally;

static bool gate_differs(const Tally *tally, uint64 occupancy);
static bool repair_gate(int gate);
static int	repair_roles(int gate);
static bool repair_counter(pg_atomic_uint32 *counter, bool total, const char *name);
static bool tally_stays(int gate, const Tally *tally);
static Tally tally_words(int gate);

/* Returns how many counters were wrong.  Called by the monitor. */
int
governor_check_and_repair(void)
{
	int			repaired = 0;

	for (int gate = 0; gate < governor_gate_count(); gate++)
	{
		Tally		tally = tally_words(gate);

		if (gate_differs(&tally, pg_atomic_read_u64(&governor_gate_at(gate)->occupancy)))
			repaired += repair_gate(gate);
		if (pg_atomic_read_u32(&governor_gate_at(gate)->role_slots) > 0)
			repaired += repair_roles(gate);
	}
	repaired += repair_counter(&governor->total_taken, true, "slots of all pools");
	repaired += repair_counter(&governor->reserved_taken, false, "reserved slots");
	if (repaired > 0)
		pg_atomic_fetch_add_u64(&governor->repairs, repaired);
	return repaired;
}

static bool
gate_differs(const Tally *tally, uint64 occupancy)
{
	return occupancy != ((uint64) tally->queued << 32 | tally->taken);
}

static bool
repair_gate(int gate_index)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	Tally		tally;
	uint64		seen;
	bool		repaired = false;

	LWLockAcquire(governor_gate_lock(gate_index), LW_EXCLUSIVE);
	tally = tally_words(gate_index);
	GOVERNOR_DELAY();
	seen = pg_atomic_read_u64(&gate->occupancy);
	GOVERNOR_DELAY();
	if (gate_differs(&tally, seen) && tally_stays(gate_index, &tally))
		repaired = pg_atomic_compare_exchange_u64(&gate->occupancy, &seen,
												  (uint64) tally.queued << 32 | tally.taken);
	LWLockRelease(governor_gate_lock(gate_index));
	if (!repaired)
		return false;
	ereport(LOG,
			(errmsg("pg_governor: repaired class \"%s\" in pool \"%s\": %d slots taken and %d sessions queued instead of %d and %d",
					governor_class_names[governor_class_of_gate(gate_index)],
					governor_pool_of_gate(gate_index)->name, (int) tally.taken, (int) tally.queued,
					(int) (uint32) seen, (int) (uint32) (seen >> 32)),
			 errhint("This is an error in pg_governor; please report it.")));
	governor_gate_admit_free(gate_index);
	return true;
}

/* Slots by role; all that are wrong at once count as one repair. */
static int
repair_roles(int gate_index)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	Tally		tally = tally_words(gate_index);
	uint32		seen[GOVERNOR_ROLES];
	bool		differs = false;

	GOVERNOR_DELAY();
	for (int role = 0; role < GOVERNOR_ROLES; role++)
	{
		seen[role] = pg_atomic_read_u32(&gate->role_taken[role]);
		differs = differs || seen[role] != tally.by_role[role];
	}
	GOVERNOR_DELAY();
	if (!differs || !tally_stays(gate_index, &tally))
		return 0;
	differs = false;
	for (int role = 0; role < GOVERNOR_ROLES; role++)
		if (seen[role] != tally.by_role[role] &&
			pg_atomic_compare_exchange_u32(&gate->role_taken[role], &seen[role], tally.by_role[role]))
			differs = true;
	if (!differs)
		return 0;
	ereport(LOG,
			(errmsg("pg_governor: repaired the slots of roles in class \"%s\" of pool \"%s\"",
					governor_class_names[governor_class_of_gate(gate_index)],
					governor_pool_of_gate(gate_index)->name),
			 errhint("This is an error in pg_governor; please report it.")));
	governor_gate_admit_free(gate_index);
	return 1;
}

static bool
repair_counter(pg_atomic_uint32 *counter, bool total, const char *name)
{
	Tally		tally = tally_words(ALL_GATES);
	uint32		right = total ? tally.counted : tally.reserved;
	uint32		seen;

	GOVERNOR_DELAY();
	seen = pg_atomic_read_u32(counter);
	GOVERNOR_DELAY();
	if (seen == right || !tally_stays(ALL_GATES, &tally) ||
		!pg_atomic_compare_exchange_u32(counter, &seen, right))
		return false;
	ereport(LOG,
			(errmsg("pg_governor: repaired the number of %s: %d instead of %d", name,
					(int) right, (int) seen),
			 errhint("This is an error in pg_governor; please report it.")));
	return true;
}

/* Whether no change was being made, and the words are still the same. */
static bool
tally_stays(int gate, const Tally *tally)
{
	Tally		again;

	pg_memory_barrier();
	again = tally_words(gate);
	GOVERNOR_DELAY();
	return !tally->in_change && tally->mark == again.mark;
}

static Tally
tally_words(int gate)
{
	Tally		tally = {0};

	for (int i = 0; i < governor->session_count; i++)
	{
		uint64		word = pg_atomic_read_u64(governor_word_at(i));

		tally.mark = tally.mark * UINT64CONST(0x9E3779B97F4A7C15) + word;
		if (gate != ALL_GATES && governor_word_gate(word) != gate)
			continue;
		tally.counted += (word & GOVERNOR_COUNTED) != 0 &&
			governor_word_state(word) != GOVERNOR_LEAVING;
		tally.by_role[governor_word_role(word) % GOVERNOR_ROLES] += (word & GOVERNOR_ROLED) != 0 &&
			governor_word_state(word) != GOVERNOR_LEAVING;
		switch (governor_word_state(word))
		{
			case GOVERNOR_RUNNING:
			case GOVERNOR_WARM:
				tally.taken++;
				break;
			case GOVERNOR_QUEUED:
				tally.queued++;
				break;
			case GOVERNOR_RESERVED:
				tally.reserved++;
				break;
			case GOVERNOR_ENTERING:
			case GOVERNOR_LEAVING:
				tally.in_change = true;
				break;
			default:
				break;
		}
	}
	/* What is read next is read later. */
	pg_memory_barrier();
	return tally;
}
