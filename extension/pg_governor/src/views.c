/*
 * views.c
 *		The functions under the views of pools, queues and sessions.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "choice.h"
#include "clock.h"
#include "gate.h"
#include "ledger.h"
#include "rows.h"
#include "state.h"
#include "tally.h"
#include "word.h"

PG_FUNCTION_INFO_V1(pg_governor_pools);
GOVERNOR_FORMER_NAME(pg_governor_pools, _0_2);
GOVERNOR_FORMER_NAME(pg_governor_pools, _0_3);
PG_FUNCTION_INFO_V1(pg_governor_queue);
GOVERNOR_FORMER_NAME(pg_governor_queue, _0_2);
GOVERNOR_FORMER_NAME(pg_governor_queue, _0_3);
PG_FUNCTION_INFO_V1(pg_governor_sessions);
GOVERNOR_FORMER_NAME(pg_governor_sessions, _0_2);
GOVERNOR_FORMER_NAME(pg_governor_sessions, _0_3);
PG_FUNCTION_INFO_V1(pg_governor_reset);
GOVERNOR_FORMER_NAME(pg_governor_reset, _0_2);
GOVERNOR_FORMER_NAME(pg_governor_reset, _0_3);

/* A session that queues, and its place among those of its role. */
typedef struct Waiter
{
	int			session;
	int			place;
} Waiter;

static const GovernorColumn pools_columns[] = {
	{"pool", TEXTOID},
	{"class", TEXTOID},
	{"paused", BOOLOID},
	{"slot_limit", INT4OID},
	{"capacity", INT4OID},
	{"hard_max", INT4OID},
	{"taken", INT4OID},
	{"running", INT4OID},
	{"warm", INT4OID},
	{"reserved", INT4OID},
	{"discounted", INT4OID},
	{"long", INT4OID},
	{"queued", INT4OID},
	{"estimated_wait_ms", FLOAT8OID},
	{"admits_free", INT8OID},
	{"admits_again", INT8OID},
	{"admits_turn", INT8OID},
	{"admits_reserved", INT8OID},
	{"admits_timeout", INT8OID},
	{"admits_blocking", INT8OID},
	{"admits_stall", INT8OID},
	{"admits_opened", INT8OID},
	{"admits_booked", INT8OID},
	{"admits_by_hand", INT8OID},
	{"waits", INT8OID},
	{"wait_ms_total", FLOAT8OID},
	{"wait_ms_max", FLOAT8OID},
	{"wait_histogram", INT8ARRAYOID},
	{"stalls", INT8OID},
	{"became_long", INT8OID},
	{"timeouts", INT8OID},
	{"refused", INT8OID},
	{"cancelled", INT8OID},
	{"stats_reset", TIMESTAMPTZOID},
	{"admits_demoted", INT8OID},	/* of 0.2; always null */
};

static const GovernorColumn queue_columns[] = {
	{"pid", INT4OID},
	{"pool", TEXTOID},
	{"class", TEXTOID},
	{"place", INT4OID},
	{"waiting_since", TIMESTAMPTZOID},
	{"waiting_ms", FLOAT8OID},
	{"blocks_others", BOOLOID},
	{"observed", BOOLOID},
};

static const GovernorColumn sessions_columns[] = {
	{"pid", INT4OID},
	{"pool", TEXTOID},
	{"state", TEXTOID},
	{"class", TEXTOID},
	{"since", TIMESTAMPTZOID},
	{"discounted", BOOLOID},
	{"long", BOOLOID},
	{"paused", BOOLOID},
	{"admits_free", INT8OID},
	{"admits_again", INT8OID},
	{"waits", INT8OID},
	{"wait_ms_total", FLOAT8OID},
	{"wait_ms_max", FLOAT8OID},
};

static void put_gate(const GovernorRows *rows, int gate, GovernorTally *tally);
static Datum wait_buckets(GovernorGateStats *stats);
static int	list_waiters(int gate, Waiter *waiters);
static void put_waiter(const GovernorRows *rows, int gate, Waiter waiter);
static void put_session(const GovernorRows *rows, int index, int pool);
static const char *state_name(GovernorSessionState state);
static uint64 sum(pg_atomic_uint64 *counters);

Datum
pg_governor_pools(PG_FUNCTION_ARGS)
{
	GovernorRows rows = governor_rows_begin(fcinfo, pools_columns);
	int			gates = governor_gate_count();
	GovernorTally *tallies = palloc0(gates * sizeof(GovernorTally));

	governor_tally_sessions(tallies, gates);
	for (int gate = 0; gate < gates; gate++)
		if (governor_pool_is_used(gate / GOVERNOR_CLASSES))
			put_gate(&rows, gate, &tallies[gate]);
	return (Datum) 0;
}

/* The queues in their order, gate after gate. */
Datum
pg_governor_queue(PG_FUNCTION_ARGS)
{
	GovernorRows rows = governor_rows_begin(fcinfo, queue_columns);
	Waiter	   *waiters = palloc(governor->session_count * sizeof(Waiter));

	for (int gate = 0; gate < governor_gate_count(); gate++)
	{
		int			count = list_waiters(gate, waiters);

		for (int i = 0; i < count; i++)
			put_waiter(&rows, gate, waiters[i]);
	}
	return (Datum) 0;
}

Datum
pg_governor_sessions(PG_FUNCTION_ARGS)
{
	GovernorRows rows = governor_rows_begin(fcinfo, sessions_columns);
	int			pools = governor->pool_count;

	for (int i = 0; i < governor->session_count; i++)
	{
		GovernorSession *session = governor_session_at(i);
		int			pool = *(volatile int *) &session->pool;

		if (session->pid != 0 && pool >= 0 && pool < pools)
			put_session(&rows, i, pool);
	}
	return (Datum) 0;
}

/* A count that is being made at this moment may survive. */
Datum
pg_governor_reset(PG_FUNCTION_ARGS)
{
	governor_rows_need_library();
	for (int gate = 0; gate < governor_gate_count(); gate++)
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
	governor_ledger_reset();
	governor_choice_reset();
	/* The monitor forgets its samples when it sees this. */
	pg_atomic_write_u64(&governor->stats_reset, GetCurrentTimestamp());
	PG_RETURN_VOID();
}

static void
put_gate(const GovernorRows *rows, int gate_index, GovernorTally *tally)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	GovernorOccupancy occupancy = governor_gate_occupancy(gate);
	GovernorGateStats stats;
	Datum		values[lengthof(pools_columns)];
	bool		nulls[lengthof(pools_columns)] = {false};
	int			column = 0;

	LWLockAcquire(governor_gate_lock(gate_index), LW_SHARED);
	stats = gate->stats;
	LWLockRelease(governor_gate_lock(gate_index));
	stats.admits[GOVERNOR_FREE] += tally->admits_free;
	stats.admits[GOVERNOR_AGAIN] += tally->admits_again;

	values[column++] = CStringGetTextDatum(governor_pool_of_gate(gate_index)->name);
	values[column++] = CStringGetTextDatum(governor_class_names[governor_class_of_gate(gate_index)]);
	values[column++] = BoolGetDatum(pg_atomic_read_u32(&governor_pool_of_gate(gate_index)->paused) != 0);
	values[column++] = Int32GetDatum(pg_atomic_read_u32(&gate->limit));
	values[column++] = Int32GetDatum(pg_atomic_read_u32(&gate->capacity));
	values[column++] = Int32GetDatum(pg_atomic_read_u32(&gate->hard_max));
	values[column++] = Int32GetDatum(occupancy.taken);
	values[column++] = Int32GetDatum(tally->running);
	values[column++] = Int32GetDatum(tally->warm);
	values[column++] = Int32GetDatum(tally->reserved);
	values[column++] = Int32GetDatum(tally->discounted);
	values[column++] = Int32GetDatum(tally->long_ones);
	values[column++] = Int32GetDatum(occupancy.queued);
	values[column++] = Float8GetDatum(governor_rows_ms((uint64) occupancy.queued *
													   pg_atomic_read_u32(&gate->place_us)));
	for (int reason = 0; reason < GOVERNOR_REASONS; reason++)
		values[column++] = Int64GetDatum(stats.admits[reason]);
	values[column++] = Int64GetDatum(stats.waits);
	values[column++] = Float8GetDatum(governor_rows_ms(stats.wait_us_total));
	values[column++] = Float8GetDatum(governor_rows_ms(stats.wait_us_max));
	values[column++] = wait_buckets(&stats);
	values[column++] = Int64GetDatum(stats.stalls);
	values[column++] = Int64GetDatum(stats.became_long);
	values[column++] = Int64GetDatum(stats.timeouts);
	values[column++] = Int64GetDatum(stats.refused);
	values[column++] = Int64GetDatum(stats.cancelled);
	values[column++] = TimestampTzGetDatum(pg_atomic_read_u64(&governor->stats_reset));
	nulls[column++] = true;
	Assert(column == lengthof(pools_columns));
	governor_rows_put(rows, values, nulls);
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

/* Memory is allocated after the lock is released. */
static int
list_waiters(int gate_index, Waiter *waiters)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	int			count = 0;

	if (governor_gate_occupancy(gate).queued == 0)
		return 0;
	LWLockAcquire(governor_gate_lock(gate_index), LW_SHARED);
	for (int role = 0; role < GOVERNOR_ROLES; role++)
	{
		int			place = 1;

		for (int i = gate->heads[role]; i != GOVERNOR_NOBODY; i = governor_session_at(i)->next)
			waiters[count++] = (Waiter)
			{
				.session = i, .place = place++
			};
	}
	LWLockRelease(governor_gate_lock(gate_index));
	return count;
}

static void
put_waiter(const GovernorRows *rows, int gate, Waiter waiter)
{
	GovernorSession *session = governor_session_at(waiter.session);
	uint64		since = session->queued_since;
	uint64		now = governor_now_us();
	uint64		word = pg_atomic_read_u64(governor_word_at(waiter.session));
	Datum		values[lengthof(queue_columns)];
	bool		nulls[lengthof(queue_columns)] = {false};
	int			column = 0;

	values[column++] = Int32GetDatum(session->pid);
	values[column++] = CStringGetTextDatum(governor_pool_of_gate(gate)->name);
	values[column++] = CStringGetTextDatum(governor_class_names[governor_class_of_gate(gate)]);
	values[column++] = Int32GetDatum(waiter.place);
	values[column++] = TimestampTzGetDatum(governor_rows_timestamp(since));
	values[column++] = Float8GetDatum(governor_rows_ms(now > since ? now - since : 0));
	values[column++] = BoolGetDatum(session->blocks_others);
	values[column++] = BoolGetDatum((word & GOVERNOR_OBSERVED) != 0);
	Assert(column == lengthof(queue_columns));
	governor_rows_put(rows, values, nulls);
}

static void
put_session(const GovernorRows *rows, int index, int pool)
{
	GovernorSession *session = governor_session_at(index);
	uint64		word = pg_atomic_read_u64(governor_word_at(index));
	GovernorSessionState state = governor_word_state(word);
	int			gate = governor_word_gate(word);
	bool		idle = gate < 0;
	Datum		values[lengthof(sessions_columns)];
	bool		nulls[lengthof(sessions_columns)] = {false};
	int			column = 0;

	/* What the session wrote before its word is read after it. */
	pg_read_barrier();
	values[column++] = Int32GetDatum(session->pid);
	values[column++] = CStringGetTextDatum(governor->pools[pool].name);
	values[column++] = CStringGetTextDatum(state_name(state));
	nulls[column] = idle;
	values[column++] = idle ? (Datum) 0 :
		CStringGetTextDatum(governor_class_names[governor_class_of_gate(gate)]);
	nulls[column] = idle;
	values[column++] = TimestampTzGetDatum(governor_rows_timestamp(state == GOVERNOR_QUEUED ?
																	session->queued_since : session->since));
	values[column++] = BoolGetDatum(state == GOVERNOR_RUNNING && session->discounted);
	values[column++] = BoolGetDatum(state == GOVERNOR_RUNNING && session->is_long);
	values[column++] = BoolGetDatum(pg_atomic_read_u64(&session->paused_since) != 0);
	values[column++] = Int64GetDatum(sum(session->admits_free));
	values[column++] = Int64GetDatum(sum(session->admits_again));
	values[column++] = Int64GetDatum(pg_atomic_read_u64(&session->waits));
	values[column++] = Float8GetDatum(governor_rows_ms(pg_atomic_read_u64(&session->wait_us_total)));
	values[column++] = Float8GetDatum(governor_rows_ms(pg_atomic_read_u64(&session->wait_us_max)));
	Assert(column == lengthof(sessions_columns));
	governor_rows_put(rows, values, nulls);
}

static const char *
state_name(GovernorSessionState state)
{
	switch (state)
	{
		case GOVERNOR_ENTERING:
		case GOVERNOR_QUEUED:
			return "queued";
		case GOVERNOR_RUNNING:
			return "running";
		case GOVERNOR_WARM:
			return "warm";
		case GOVERNOR_RESERVED:
			return "reserved";
		default:
			return "idle";
	}
}

static uint64
sum(pg_atomic_uint64 *counters)
{
	uint64		total = 0;

	for (int class = 0; class < GOVERNOR_CLASSES; class++)
		total += pg_atomic_read_u64(&counters[class]);
	return total;
}
