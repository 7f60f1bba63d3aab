/*
 * views.c
 *		The functions under the views: what the shared state looks like now.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "gate.h"
#include "state.h"

PG_FUNCTION_INFO_V1(pg_governor_pools);
PG_FUNCTION_INFO_V1(pg_governor_queue);
PG_FUNCTION_INFO_V1(pg_governor_sessions);
PG_FUNCTION_INFO_V1(pg_governor_reset);

/* What has to be counted over all sessions for a gate. */
typedef struct GateTally
{
	int			running;
	int			warm;
	int			reserved;
	int			discounted;
} GateTally;

#define POOLS_COLUMNS 27
#define QUEUE_COLUMNS 7
#define SESSIONS_COLUMNS 11

static const char *const state_names[] = {
	"idle", "queued", "running", "warm", "reserved"
};

static void require_shared_state(void);
static void tally_sessions(GateTally *tallies, int gates);
static void put_gate(ReturnSetInfo *result, int gate, GateTally *tally);
static Datum wait_buckets(GovernorGateStats *stats);
static void put_session(ReturnSetInfo *result, GovernorSession *session, uint32 state);
static double ms(uint64 us);
static uint64 sum(pg_atomic_uint64 *counters);

Datum
pg_governor_pools(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	GateTally  *tallies;
	int			gates;

	require_shared_state();
	governor_materialize(fcinfo);
	gates = governor->pool_count * GOVERNOR_CLASSES;
	tallies = palloc0(gates * sizeof(GateTally));
	tally_sessions(tallies, gates);
	for (int gate = 0; gate < gates; gate++)
		put_gate(result, gate, &tallies[gate]);
	return (Datum) 0;
}

/* The queue in its order, gate after gate. */
Datum
pg_governor_queue(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	int		   *waiters;

	require_shared_state();
	governor_materialize(fcinfo);
	waiters = palloc(governor->session_count * sizeof(int));
	for (int gate = 0; gate < governor->pool_count * GOVERNOR_CLASSES; gate++)
	{
		TimestampTz now = GetCurrentTimestamp();
		int			count = 0;

		/* Memory is allocated after the lock is given back. */
		LWLockAcquire(governor_gate_lock(gate), LW_SHARED);
		for (int i = governor_gate_at(gate)->head; i != GOVERNOR_NOBODY;
			 i = governor_session_at(i)->next)
			waiters[count++] = i;
		LWLockRelease(governor_gate_lock(gate));

		for (int i = 0; i < count; i++)
		{
			GovernorSession *session = governor_session_at(waiters[i]);
			TimestampTz since = session->since;
			Datum		values[QUEUE_COLUMNS];
			bool		nulls[QUEUE_COLUMNS] = {false};
			int			column = 0;

			values[column++] = Int32GetDatum(session->pid);
			values[column++] = CStringGetTextDatum(governor->pools[gate / GOVERNOR_CLASSES].name);
			values[column++] = CStringGetTextDatum(governor_class_names[gate % GOVERNOR_CLASSES]);
			values[column++] = Int32GetDatum(i + 1);
			values[column++] = TimestampTzGetDatum(since);
			values[column++] = Float8GetDatum(ms(now > since ? now - since : 0));
			values[column++] = BoolGetDatum(session->blocks_others);
			tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
		}
	}
	return (Datum) 0;
}

Datum
pg_governor_sessions(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	require_shared_state();
	governor_materialize(fcinfo);
	for (int i = 0; i < governor->session_count; i++)
	{
		GovernorSession *session = governor_session_at(i);

		if (session->pid != 0 && session->pool >= 0)
			put_session(result, session, pg_atomic_read_u32(&session->state));
	}
	return (Datum) 0;
}

/* A count that is being made at this moment may survive. */
Datum
pg_governor_reset(PG_FUNCTION_ARGS)
{
	require_shared_state();
	for (int gate = 0; gate < governor->pool_count * GOVERNOR_CLASSES; gate++)
	{
		LWLockAcquire(governor_gate_lock(gate), LW_EXCLUSIVE);
		memset(&governor_gate_at(gate)->stats, 0, sizeof(GovernorGateStats));
		LWLockRelease(governor_gate_lock(gate));
	}
	for (int i = 0; i < governor->session_count; i++)
	{
		GovernorSession *session = governor_session_at(i);

		for (int class = 0; class < GOVERNOR_CLASSES; class++)
		{
			pg_atomic_write_u64(&session->admits_free[class], 0);
			pg_atomic_write_u64(&session->admits_again[class], 0);
		}
		pg_atomic_write_u64(&session->waits, 0);
		pg_atomic_write_u64(&session->wait_us_total, 0);
		pg_atomic_write_u64(&session->wait_us_max, 0);
	}
	pg_atomic_write_u64(&governor->stats_reset, GetCurrentTimestamp());
	PG_RETURN_VOID();
}

static void
require_shared_state(void)
{
	if (governor == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pg_governor must be loaded via \"shared_preload_libraries\"")));
}

static void
tally_sessions(GateTally *tallies, int gates)
{
	for (int i = 0; i < governor->session_count; i++)
	{
		GovernorSession *session = governor_session_at(i);
		int			gate = session->gate;

		if (gate < 0 || gate >= gates)
			continue;
		switch (pg_atomic_read_u32(&session->state))
		{
			case GOVERNOR_RUNNING:
				tallies[gate].running++;
				tallies[gate].discounted += session->discounted;
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

static void
put_gate(ReturnSetInfo *result, int gate_index, GateTally *tally)
{
	GovernorPool *pool = &governor->pools[gate_index / GOVERNOR_CLASSES];
	GovernorGate *gate = governor_gate_at(gate_index);
	int			class = gate_index % GOVERNOR_CLASSES;
	GovernorOccupancy occupancy = governor_gate_occupancy(gate);
	GovernorGateStats stats;
	Datum		values[POOLS_COLUMNS];
	bool		nulls[POOLS_COLUMNS] = {false};
	int			column = 0;

	LWLockAcquire(governor_gate_lock(gate_index), LW_SHARED);
	stats = gate->stats;
	LWLockRelease(governor_gate_lock(gate_index));
	for (int i = 0; i < governor->session_count; i++)
	{
		GovernorSession *session = governor_session_at(i);

		if (session->pool != gate_index / GOVERNOR_CLASSES)
			continue;
		stats.admits[GOVERNOR_FREE] += pg_atomic_read_u64(&session->admits_free[class]);
		stats.admits[GOVERNOR_AGAIN] += pg_atomic_read_u64(&session->admits_again[class]);
	}

	values[column++] = CStringGetTextDatum(pool->name);
	values[column++] = CStringGetTextDatum(governor_class_names[class]);
	values[column++] = Int32GetDatum(pg_atomic_read_u32(&gate->limit));
	values[column++] = Int32GetDatum(pg_atomic_read_u32(&gate->capacity));
	values[column++] = Int32GetDatum(occupancy.taken);
	values[column++] = Int32GetDatum(tally->running);
	values[column++] = Int32GetDatum(tally->warm);
	values[column++] = Int32GetDatum(tally->reserved);
	values[column++] = Int32GetDatum(tally->discounted);
	values[column++] = Int32GetDatum(occupancy.queued);
	for (int reason = 0; reason < GOVERNOR_REASONS; reason++)
		values[column++] = Int64GetDatum(stats.admits[reason]);
	values[column++] = Int64GetDatum(stats.waits);
	values[column++] = Float8GetDatum(ms(stats.wait_us_total));
	values[column++] = Float8GetDatum(ms(stats.wait_us_max));
	values[column++] = wait_buckets(&stats);
	values[column++] = Int64GetDatum(stats.stalls);
	values[column++] = Int64GetDatum(stats.timeouts);
	values[column++] = Int64GetDatum(stats.refused);
	values[column++] = Int64GetDatum(stats.cancelled);
	values[column++] = TimestampTzGetDatum(pg_atomic_read_u64(&governor->stats_reset));
	Assert(column == POOLS_COLUMNS);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

static Datum
wait_buckets(GovernorGateStats *stats)
{
	Datum		counts[GOVERNOR_WAIT_BUCKETS];

	for (int i = 0; i < GOVERNOR_WAIT_BUCKETS; i++)
		counts[i] = Int64GetDatum(stats->wait_buckets[i]);
	return PointerGetDatum(construct_array(counts, GOVERNOR_WAIT_BUCKETS, INT8OID,
										   sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

static void
put_session(ReturnSetInfo *result, GovernorSession *session, uint32 state)
{
	Datum		values[SESSIONS_COLUMNS];
	bool		nulls[SESSIONS_COLUMNS] = {false};
	bool		idle = state == GOVERNOR_IDLE;
	int			column = 0;

	values[column++] = Int32GetDatum(session->pid);
	values[column++] = CStringGetTextDatum(governor->pools[session->pool].name);
	values[column++] = CStringGetTextDatum(state_names[state]);
	nulls[column] = idle;
	values[column++] = idle ? (Datum) 0 :
		CStringGetTextDatum(governor_class_names[session->gate % GOVERNOR_CLASSES]);
	nulls[column] = idle;
	values[column++] = TimestampTzGetDatum(session->since);
	values[column++] = BoolGetDatum(state == GOVERNOR_RUNNING && session->discounted);
	values[column++] = Int64GetDatum(sum(session->admits_free));
	values[column++] = Int64GetDatum(sum(session->admits_again));
	values[column++] = Int64GetDatum(pg_atomic_read_u64(&session->waits));
	values[column++] = Float8GetDatum(ms(pg_atomic_read_u64(&session->wait_us_total)));
	values[column++] = Float8GetDatum(ms(pg_atomic_read_u64(&session->wait_us_max)));
	Assert(column == SESSIONS_COLUMNS);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

static double
ms(uint64 us)
{
	return us / 1000.0;
}

static uint64
sum(pg_atomic_uint64 *counters)
{
	uint64		total = 0;

	for (int class = 0; class < GOVERNOR_CLASSES; class++)
		total += pg_atomic_read_u64(&counters[class]);
	return total;
}
