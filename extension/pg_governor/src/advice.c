/*
 * advice.c
 *		The function that says what limit the sampled load of each gate suggests.
 */
#include "compat.h"

#include <unistd.h>

#include "utils/builtins.h"

#include "advice.h"
#include "rows.h"
#include "state.h"

PG_FUNCTION_INFO_V1(pg_governor_advice_0_2);

#define ADVICE_COLUMNS 10

/* The monitor samples ten times a second. */
#define LOOKS_PER_SECOND 10.0

static char *reason_for(const GovernorSample *sample, GovernorAdvice advice, int cores);

Datum
pg_governor_advice_0_2(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = governor_rows_begin(fcinfo, ADVICE_COLUMNS);
	int			cores = Max(1, (int) sysconf(_SC_NPROCESSORS_ONLN));

	for (int gate = 0; gate < governor_gate_count(); gate++)
	{
		GovernorSample sample = governor_gate_at(gate)->sample;
		GovernorAdvice advice;
		Datum		values[ADVICE_COLUMNS];
		bool		nulls[ADVICE_COLUMNS] = {false};
		int			column = 0;

		if (governor_class_of_gate(gate) == GOVERNOR_LONG || sample.sessions == 0)
			continue;
		advice = governor_advise(&sample, governor_class_of_gate(gate), cores);
		values[column++] = CStringGetTextDatum(governor_pool_of_gate(gate)->name);
		values[column++] = CStringGetTextDatum(governor_class_names[governor_class_of_gate(gate)]);
		values[column++] = Int32GetDatum(pg_atomic_read_u32(&governor_gate_at(gate)->limit));
		values[column++] = Float8GetDatum(sample.looks / LOOKS_PER_SECOND);
		values[column++] = Float8GetDatum(governor_advice_share(sample.sessions, sample.looks));
		values[column++] = Int32GetDatum(sample.sessions_max);
		values[column++] = Float8GetDatum(governor_advice_share(sample.on_cpu, sample.sessions));
		values[column++] = Float8GetDatum(governor_advice_share(sample.on_locks, sample.sessions));
		nulls[column] = advice.verdict == GOVERNOR_ADVICE_TOO_SHORT;
		values[column++] = Int32GetDatum(advice.limit);
		values[column++] = CStringGetTextDatum(reason_for(&sample, advice, cores));
		Assert(column == ADVICE_COLUMNS);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

static char *
reason_for(const GovernorSample *sample, GovernorAdvice advice, int cores)
{
	switch (advice.verdict)
	{
		case GOVERNOR_ADVICE_TOO_SHORT:
			return psprintf("Sampled for %.1f s; at least %.0f s are needed.",
							sample->looks / LOOKS_PER_SECOND, GOVERNOR_ADVICE_LOOKS_MIN / LOOKS_PER_SECOND);
		case GOVERNOR_ADVICE_NO_LIMIT:
			return psprintf("Never more than %u sessions at once on %d cores: a limit would not help.",
							sample->sessions_max, cores);
		case GOVERNOR_ADVICE_LOCKS:
			return psprintf("%.0f %% of the time sessions waited for locks of each other: fewer at once wait less.",
							100 * governor_advice_share(sample->on_locks, sample->sessions));
		case GOVERNOR_ADVICE_WAITS:
			return psprintf("%.0f %% of the time sessions used the CPU, so it takes more of them to keep %d cores busy.",
							100 * governor_advice_share(sample->on_cpu, sample->sessions), cores);
		default:
			return psprintf("Up to %u sessions competed for %d cores.", sample->sessions_max, cores);
	}
}
