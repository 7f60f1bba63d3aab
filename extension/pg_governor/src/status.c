/*
 * status.c
 *		One row for each gate: how many sessions it lets work at this moment, and in one word why.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "doze.h"
#include "gate.h"
#include "rows.h"
#include "state.h"

PG_FUNCTION_INFO_V1(pg_governor_status);

static const GovernorColumn status_columns[] = {
	{"pool", TEXTOID},
	{"class", TEXTOID},
	{"slot_limit", INT4OID},
	{"effective_limit", INT4OID},
	{"enforced", TEXTOID},
	{"found_limit", INT4OID},
	{"wait_ms", FLOAT8OID},
	{"service_ms", FLOAT8OID},
	{"refused_early", INT8OID},
	{"mode", TEXTOID},
};

/* What a gate enforces. */
typedef struct Enforced
{
	const char *word;
	bool		bounded;		/* false: it lets everybody in */
	uint32		slots;
} Enforced;

static Enforced enforced_by(int gate);
static Enforced slots_of(GovernorGate *gate);
static void put_gate(const GovernorRows *rows, int gate);

Datum
pg_governor_status(PG_FUNCTION_ARGS)
{
	GovernorRows rows = governor_rows_begin(fcinfo, status_columns);

	for (int gate = 0; gate < governor_gate_count(); gate++)
		if (governor_pool_is_used(gate / GOVERNOR_CLASSES))
			put_gate(&rows, gate);
	return (Datum) 0;
}

static void
put_gate(const GovernorRows *rows, int gate)
{
	GovernorGate *at = governor_gate_at(gate);
	uint32		place_us = pg_atomic_read_u32(&at->place_us);
	uint32		found = pg_atomic_read_u32(&at->found_limit);
	uint32		service_us = pg_atomic_read_u32(&at->service_us);
	Enforced	enforced = enforced_by(gate);
	uint64		refused_early;
	Datum		values[lengthof(status_columns)];
	bool		nulls[lengthof(status_columns)] = {false};
	int			column = 0;

	LWLockAcquire(governor_gate_lock(gate), LW_SHARED);
	refused_early = at->stats.refused_early;
	LWLockRelease(governor_gate_lock(gate));
	values[column++] = CStringGetTextDatum(governor_pool_of_gate(gate)->name);
	values[column++] = CStringGetTextDatum(governor_class_names[governor_class_of_gate(gate)]);
	values[column++] = Int32GetDatum(pg_atomic_read_u32(&at->limit));
	nulls[column] = !enforced.bounded;
	values[column++] = Int32GetDatum(enforced.slots);
	values[column++] = CStringGetTextDatum(enforced.word);
	nulls[column] = found == 0;
	values[column++] = Int32GetDatum(found);
	nulls[column] = place_us == 0;
	values[column++] = Float8GetDatum(governor_rows_ms((uint64) (governor_gate_occupancy(at).queued + 1) * place_us));
	nulls[column] = service_us == 0;
	values[column++] = Float8GetDatum(governor_rows_ms(service_us));
	values[column++] = Int64GetDatum(refused_early);
	values[column++] = CStringGetTextDatum(governor_gate_is_observed(gate) ? "observe" : "enforce");
	Assert(column == lengthof(status_columns));
	governor_rows_put(rows, values, nulls);
}

/* What lets everybody in, or nobody, comes before what the gate itself does. */
static Enforced
enforced_by(int gate)
{
	if (pg_atomic_read_u32(&governor->enabled) == 0)
		return (Enforced) {.word = "disabled"};
	if (governor_gate_is_observed(gate))
		return (Enforced) {.word = "observed"};
	if (pg_atomic_read_u32(&governor_pool_of_gate(gate)->paused) != 0)
		return (Enforced) {.word = "paused", .bounded = true};
	if (pg_atomic_read_u32(&governor_gate_at(gate)->limit) == 0)
		return (Enforced) {.word = "unlimited"};
	if (governor_doze_gates_are_open() || pg_atomic_read_u32(&governor_gate_at(gate)->capacity) == 0)
		return (Enforced) {.word = "unwatched"};
	return slots_of(governor_gate_at(gate));
}

static Enforced
slots_of(GovernorGate *gate)
{
	Enforced	enforced = {.bounded = true, .slots = pg_atomic_read_u32(&gate->capacity)};

	switch ((GovernorEnforced) pg_atomic_read_u32(&gate->enforced))
	{
		case GOVERNOR_ENFORCED_LIMIT:
			enforced.word = "limit";
			break;
		case GOVERNOR_ENFORCED_OVERLOAD:
			enforced.word = "overload_factor";
			break;
		case GOVERNOR_ENFORCED_RAISED:
			enforced.word = "raised";
			break;
		case GOVERNOR_ENFORCED_LOWERED:
			enforced.word = "lowered";
			break;
		case GOVERNOR_ENFORCED_MOVED:
			enforced.word = "runnable_per_cpu";
			break;
		case GOVERNOR_ENFORCED_FOUND:
			enforced.word = "find_limit";
			break;
	}
	return enforced;
}
