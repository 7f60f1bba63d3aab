/*
 * sample.c
 *		Adds a look to what pg_governor_advice() judges by: for each gate, and for
 *		the sessions of each pool that work and have met no gate.
 */
#include "compat.h"

#include "sample.h"
#include "waitkind.h"
#include "word.h"

static uint32 ungated[GOVERNOR_MAX_POOLS][GOVERNOR_WAIT_KINDS];
static uint64 sampled_since_reset;

static void add(GovernorSample *into, const uint32 *kinds, bool afresh);

/* A session without a slot: does it work? */
void
governor_sample_ungated(int index)
{
	int			pool = *(volatile int *) &governor_session_at(index)->pool;
	PGPROC	   *proc = &ProcGlobal->allProcs[index];
	uint32		wait = *(volatile uint32 *) &proc->wait_event_info;

	if (governor_session_at(index)->pid == 0 || pool < 0 || pool >= governor->pool_count ||
		wait == GOVERNOR_IDLE_WAIT || !governor_proc_in_transaction(proc))
		return;
	ungated[pool][governor_wait_kind(wait)]++;
}

void
governor_sample(const GovernorGateLook *looks)
{
	uint64		reset = pg_atomic_read_u64(&governor->stats_reset);
	bool		afresh = reset != sampled_since_reset;

	for (int gate = 0; gate < governor_gate_count(); gate++)
		add(&governor_gate_at(gate)->sample, looks[gate].kinds, afresh);
	for (int pool = 0; pool < governor->pool_count; pool++)
		add(&governor->pools[pool].ungated, ungated[pool], afresh);
	memset(ungated, 0, governor->pool_count * sizeof(ungated[0]));
	sampled_since_reset = reset;
}

static void
add(GovernorSample *into, const uint32 *kinds, bool afresh)
{
	uint32		sessions = 0;

	if (afresh)
		memset(into, 0, sizeof(*into));
	for (int kind = 0; kind < GOVERNOR_WAIT_KINDS; kind++)
		sessions += kinds[kind];
	into->looks++;
	into->sessions += sessions;
	into->sessions_max = Max(into->sessions_max, sessions);
	into->on_cpu += kinds[GOVERNOR_WAIT_NOT];
	into->on_locks += kinds[GOVERNOR_WAIT_LOCK];
	into->on_flush += kinds[GOVERNOR_WAIT_FLUSH];
	into->outside += kinds[GOVERNOR_WAIT_OUTSIDE] + kinds[GOVERNOR_WAIT_STANDBY];
}
