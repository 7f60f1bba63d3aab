/*
 * advice.c
 *		The function that says what limit the sampled load of each gate suggests.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "advice.h"
#include "cpus.h"
#include "rows.h"
#include "state.h"

PG_FUNCTION_INFO_V1(pg_governor_advice);
GOVERNOR_FORMER_NAME(pg_governor_advice, _0_2);
GOVERNOR_FORMER_NAME(pg_governor_advice, _0_3);

static const GovernorColumn advice_columns[] = {
	{"pool", TEXTOID},
	{"class", TEXTOID},
	{"slot_limit", INT4OID},
	{"seconds", FLOAT8OID},
	{"sessions_avg", FLOAT8OID},
	{"sessions_max", INT4OID},
	{"cpu_share", FLOAT8OID},
	{"lock_share", FLOAT8OID},
	{"suggested_limit", INT4OID},
	{"reason", TEXTOID},
};

/* Instead of a class: sessions that have met no gate. */
#define UNGATED (-1)

/* The monitor samples ten times a second. */
#define LOOKS_PER_SECOND 10.0

static void put_advice(const GovernorRows *rows, int pool, int class, const GovernorSample *sample);
static char *reason_for(const GovernorSample *sample, int class, GovernorAdvice advice, int cpus);

Datum
pg_governor_advice(PG_FUNCTION_ARGS)
{
	GovernorRows rows = governor_rows_begin(fcinfo, advice_columns);

	for (int pool = 0; pool < governor->pool_count; pool++)
	{
		GovernorSample ungated = governor->pools[pool].ungated;

		if (!governor_pool_is_used(pool))
			continue;
		for (int class = 0; class < GOVERNOR_CLASSES; class++)
		{
			GovernorSample sample = governor->pools[pool].gates[class].sample;

			if (sample.sessions > 0)
				put_advice(&rows, pool, class, &sample);
		}
		if (ungated.sessions > 0)
			put_advice(&rows, pool, UNGATED, &ungated);
	}
	return (Datum) 0;
}

static void
put_advice(const GovernorRows *rows, int pool, int class, const GovernorSample *sample)
{
	int			cpus = governor_cpus();
	GovernorAdvice advice = governor_advise(sample, class == UNGATED ? GOVERNOR_QUERY : class, cpus);
	Datum		values[lengthof(advice_columns)];
	bool		nulls[lengthof(advice_columns)] = {false};
	int			column = 0;

	values[column++] = CStringGetTextDatum(governor->pools[pool].name);
	nulls[column] = class == UNGATED;
	values[column++] = class == UNGATED ? (Datum) 0 : CStringGetTextDatum(governor_class_names[class]);
	nulls[column] = class == UNGATED;
	values[column++] = class == UNGATED ? (Datum) 0 :
		Int32GetDatum(pg_atomic_read_u32(&governor->pools[pool].gates[class].limit));
	values[column++] = Float8GetDatum(sample->looks / LOOKS_PER_SECOND);
	values[column++] = Float8GetDatum(governor_advice_share(sample->sessions, sample->looks));
	values[column++] = Int32GetDatum(sample->sessions_max);
	values[column++] = Float8GetDatum(governor_advice_share(sample->on_cpu, sample->sessions));
	values[column++] = Float8GetDatum(governor_advice_share(sample->on_locks, sample->sessions));
	nulls[column] = advice.verdict == GOVERNOR_ADVICE_TOO_SHORT;
	values[column++] = Int32GetDatum(advice.limit);
	values[column++] = CStringGetTextDatum(reason_for(sample, class, advice, cpus));
	Assert(column == lengthof(advice_columns));
	governor_rows_put(rows, values, nulls);
}

static char *
reason_for(const GovernorSample *sample, int class, GovernorAdvice advice, int cores)
{
	if (class == UNGATED && advice.verdict != GOVERNOR_ADVICE_TOO_SHORT)
		return psprintf("Up to %u sessions worked at once that met no gate, %.1f on average: statements outside blocks do with pg_governor.gate_autocommit.",
						sample->sessions_max, governor_advice_share(sample->sessions, sample->looks));
	switch (advice.verdict)
	{
		case GOVERNOR_ADVICE_TOO_SHORT:
			return psprintf("Sampled for %.1f s; at least %.0f s are needed.",
							sample->looks / LOOKS_PER_SECOND, GOVERNOR_ADVICE_LOOKS_MIN / LOOKS_PER_SECOND);
		case GOVERNOR_ADVICE_NO_LIMIT:
			return psprintf("Never more than %u sessions at once at this gate, with %d CPUs: a limit would not help.",
							sample->sessions_max, cores);
		case GOVERNOR_ADVICE_LOCKS:
			return psprintf("%.0f %% of the time sessions waited for locks of each other: fewer at once wait less.",
							100 * governor_advice_share(sample->on_locks, sample->sessions));
		case GOVERNOR_ADVICE_WAITS:
			return psprintf("%.0f %% of the time sessions used the CPU, so it takes more of them to keep %d CPUs busy.",
							100 * governor_advice_share(sample->on_cpu, sample->sessions), cores);
		default:
			return psprintf("Up to %u sessions competed for %d CPUs.", sample->sessions_max, cores);
	}
}
