/*
 * health.c
 *		One row that says whether pg_governor does its work, and if not, why.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "cpus.h"
#include "doze.h"
#include "problems.h"
#include "rows.h"
#include "settings.h"
#include "state.h"

PG_FUNCTION_INFO_V1(pg_governor_health);
GOVERNOR_FORMER_NAME(pg_governor_health, _0_2);
GOVERNOR_FORMER_NAME(pg_governor_health, _0_3);

static const GovernorColumn health_columns[] = {
	{"library_version", TEXTOID},
	{"mode", TEXTOID},
	{"gates", TEXTOID},
	{"why_open", TEXTOID},
	{"monitor_pid", INT4OID},
	{"monitor_last_look", TIMESTAMPTZOID},
	{"total_limit", INT4OID},
	{"total_taken", INT4OID},
	{"reserved_taken", INT4OID},
	{"repairs", INT8OID},
	{"cpus", INT4OID},
	{"problems", TEXTARRAYOID},
};

static const char *why_open(void);
static Datum texts(List *list);
static bool any_limit(void);

Datum
pg_governor_health(PG_FUNCTION_ARGS)
{
	GovernorRows rows = governor_rows_begin(fcinfo, health_columns);
	uint64		beat = pg_atomic_read_u64(&governor->monitor_beat);
	int			monitor_pid = governor->monitor_pid;
	bool		observing = pg_atomic_read_u32(&governor->observing) != 0;
	const char *why = why_open();
	Datum		values[lengthof(health_columns)];
	bool		nulls[lengthof(health_columns)] = {false};
	int			column = 0;

	values[column++] = CStringGetTextDatum(PG_GOVERNOR_VERSION);
	values[column++] = CStringGetTextDatum(observing ? "observe" : "enforce");
	values[column++] = CStringGetTextDatum(why == NULL ? "closed" : "open");
	nulls[column] = why == NULL;
	values[column++] = why == NULL ? (Datum) 0 : CStringGetTextDatum(why);
	nulls[column] = monitor_pid == 0;
	values[column++] = Int32GetDatum(monitor_pid);
	nulls[column] = beat == 0;
	values[column++] = beat == 0 ? (Datum) 0 : TimestampTzGetDatum(governor_rows_timestamp(beat));
	values[column++] = Int32GetDatum(pg_atomic_read_u32(&governor->total_limit));
	values[column++] = Int32GetDatum(pg_atomic_read_u32(&governor->total_taken));
	values[column++] = Int32GetDatum(pg_atomic_read_u32(&governor->reserved_taken));
	values[column++] = Int64GetDatum(pg_atomic_read_u64(&governor->repairs));
	values[column++] = Int32GetDatum(governor_cpus());
	values[column++] = texts(governor_problems_find());
	Assert(column == lengthof(health_columns));
	governor_rows_put(&rows, values, nulls);
	return (Datum) 0;
}

/* Why nobody would ever wait now; NULL if somebody would. */
static const char *
why_open(void)
{
	if (!governor_enabled)
		return "pg_governor.enabled is off";
	if (governor_doze_beat_is_late() && governor->monitor == GOVERNOR_NOBODY &&
		pg_atomic_read_u32(&governor->strict) == 0)
		return "the monitor is not running; is there a free background worker (max_worker_processes)?";
	if (governor_doze_gates_are_open())
		return "the monitor has been silent for more than 5 seconds";
	if (pg_atomic_read_u32(&governor->observing) != 0)
		return "pg_governor.mode is observe";
	if (!any_limit())
		return "no limit is set";
	return NULL;
}

static Datum
texts(List *list)
{
	Datum	   *elements = palloc(Max(1, list_length(list)) * sizeof(Datum));
	ListCell   *cell;
	int			count = 0;

	foreach(cell, list)
		elements[count++] = CStringGetTextDatum((char *) lfirst(cell));
	return PointerGetDatum(construct_array(elements, count, TEXTOID, -1, false, TYPALIGN_INT));
}

static bool
any_limit(void)
{
	for (int gate = 0; gate < governor_gate_count(); gate++)
		if (pg_atomic_read_u32(&governor_gate_at(gate)->limit) > 0)
			return true;
	return false;
}
