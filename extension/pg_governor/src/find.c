/*
 * find.c
 *		The limits that the monitor finds, between the CPUs and what the settings say: steer.c has the
 *		rules, and here is what it has to know of a gate.
 *
 * What was found is in shared memory, so that a monitor that comes after another one goes on with it.
 */
#include "compat.h"

#include "utils/memutils.h"

#include "find.h"
#include "gate.h"
#include "settings.h"
#include "steer.h"
#include "tally.h"

/* Where it begins, for each CPU, as pg_governor_advice() says for transactions that flush. */
#define START_PER_CPU 16

/* What is remembered of a gate from look to look. */
typedef struct Finder
{
	bool		steers;
	double		demand;			/* sessions that are wanted, on average over some looks */
	GovernorSteer steer;
} Finder;

static Finder *finders;
static GovernorTally *tallies;

static uint64 admitted_by(int gate);

void
governor_find_start(void)
{
	int			gates = governor->pool_max * GOVERNOR_CLASSES;

	finders = MemoryContextAllocZero(TopMemoryContext, gates * sizeof(Finder));
	tallies = MemoryContextAllocZero(TopMemoryContext, gates * sizeof(GovernorTally));
}

/* Whether a gate without a queue has to be looked at: it may do better with one. */
bool
governor_find_wants_looks(void)
{
	if (!governor_find_limit)
		return false;
	for (int gate = 0; gate < governor_gate_count(); gate++)
		if (finders[gate].steers && governor_gate_occupancy(governor_gate_at(gate)).taken > 1)
			return true;
	return false;
}

uint32
governor_find_limit_of(int gate_index, GovernorFindSight sight)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	Finder	   *finder = &finders[gate_index];
	GovernorSteerSight seen = {.now = sight.now, .least = Min(sight.limit, (uint32) sight.cpus), .most = sight.limit,
	.start = Min(sight.limit, (uint32) (START_PER_CPU * sight.cpus))};
	uint32		limit;

	if (!finder->steers)
	{
		governor_steer_begin(&finder->steer, pg_atomic_read_u32(&gate->found_limit));
		finder->steers = true;
	}
	finder->demand += (sight.wanted - finder->demand) / 8;
	seen.demand = finder->demand;
	seen.service_us = pg_atomic_read_u32(&gate->service_us);
	if (governor_steer_wants_count(&finder->steer, sight.now, seen.service_us))
		seen.admitted = admitted_by(gate_index);
	limit = governor_steer(&finder->steer, &seen);
	if (pg_atomic_read_u32(&gate->found_limit) != governor_steer_found(&finder->steer))
		pg_atomic_write_u32(&gate->found_limit, governor_steer_found(&finder->steer));
	return limit;
}

/* It has no limit any more, or one that does not move. */
void
governor_find_forget(int gate)
{
	if (!finders[gate].steers)
		return;
	memset(&finders[gate], 0, sizeof(Finder));
	pg_atomic_write_u32(&governor_gate_at(gate)->found_limit, 0);
}

/* Who is let in ends, too, and no transaction has to count its end. */
static uint64
admitted_by(int gate_index)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	int			gates = governor_gate_count();
	uint64		admitted;

	memset(tallies, 0, gates * sizeof(GovernorTally));
	governor_tally_sessions(tallies, gates);
	admitted = tallies[gate_index].admits_free + tallies[gate_index].admits_again;
	LWLockAcquire(governor_gate_lock(gate_index), LW_SHARED);
	for (int reason = 0; reason < GOVERNOR_REASONS; reason++)
		admitted += gate->stats.admits[reason];
	LWLockRelease(governor_gate_lock(gate_index));
	return admitted;
}
