/*
 * ledger.c
 *		Adds up who has kept slots from others, for how long, by role, application and query, and
 *		tells of those who were cancelled.
 *
 * There is room for a bounded number of them.  A new one takes the place of the one with the fewest
 * slot-seconds, so that those with the most stay.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "ledger.h"
#include "rows.h"
#include "word.h"

PG_FUNCTION_INFO_V1(pg_governor_culprits);

static const GovernorColumn culprits_columns[] = {
	{"role", NAMEOID},
	{"application_name", TEXTOID},
	{"query_id", INT8OID},
	{"pool", TEXTOID},
	{"class", TEXTOID},
	{"slot_seconds", FLOAT8OID},
	{"waiter_seconds", FLOAT8OID},
	{"transactions", INT8OID},
	{"cancelled", INT8OID},
	{"named", INT8OID},
	{"last_pid", INT4OID},
	{"last_slots", FLOAT8OID},
	{"last_seen", TIMESTAMPTZOID},
	{"verdict", TEXTOID},
};

/* In the order of GovernorCulpritVerdict. */
static const char *const verdicts[] = {
	"watched", "cancelled", "would be cancelled", "was cancelled before", "privileged", "no gated transaction",
	"waits for its client", "ends",
};

static GovernorCulprit *place_for(const GovernorCulprit *culprit);
static void tell(const GovernorCulprit *culprit, const GovernorBlame *blame);
static int	compare(const void *a, const void *b);
static void put_culprit(const GovernorRows *rows, const GovernorCulprit *culprit);

/* What a look has seen of a session that keeps slots, and what was done about it. */
void
governor_ledger_add(const GovernorCulprit *culprit, const GovernorBlame *blame, uint64 word, int64 elapsed_us)
{
	GovernorCulprit *place;
	bool		acted = culprit->verdict == GOVERNOR_VERDICT_CANCELLED || culprit->verdict == GOVERNOR_VERDICT_NAMED;
	bool		first = true;

	LWLockAcquire(governor->registry_lock, LW_EXCLUSIVE);
	place = place_for(culprit);
	place->pid = culprit->pid;
	place->gate = culprit->gate;
	strlcpy(place->pool, governor_pool_of_gate(culprit->gate)->name, NAMEDATALEN);
	place->slots = culprit->slots;
	place->verdict = culprit->verdict;
	place->seen_at = GetCurrentTimestamp();
	place->slot_us += (uint64) (blame->slots * elapsed_us);
	place->waiter_us += (uint64) (blame->waiters * Min(1, blame->slots / Max(1, blame->taken)) * elapsed_us);
	if (place->word != word)
		place->transactions++;
	place->word = word;
	if (acted)
	{
		/* A transaction is cancelled once, and named once. */
		first = culprit->verdict == GOVERNOR_VERDICT_CANCELLED || place->named_last != word;
		place->named_last = word;
		place->cancelled += first && culprit->verdict == GOVERNOR_VERDICT_CANCELLED;
		place->named += first && culprit->verdict == GOVERNOR_VERDICT_NAMED;
	}
	LWLockRelease(governor->registry_lock);
	if (acted && first)
		tell(culprit, blame);
}

/* With governor->registry_lock held. */
static GovernorCulprit *
place_for(const GovernorCulprit *culprit)
{
	GovernorCulprit *least = &governor->culprits[0];

	for (int i = 0; i < GOVERNOR_CULPRITS; i++)
	{
		GovernorCulprit *at = &governor->culprits[i];

		if (at->pid != 0 && at->role == culprit->role && at->query_id == culprit->query_id &&
			strcmp(at->application, culprit->application) == 0)
			return at;
		if (at->slot_us < least->slot_us)
			least = at;
	}
	memset(least, 0, sizeof(*least));
	least->role = culprit->role;
	least->query_id = culprit->query_id;
	strlcpy(least->application, culprit->application, NAMEDATALEN);
	return least;
}

/* Each one, since there are few: one for each gate in the time that it takes to be a culprit. */
static void
tell(const GovernorCulprit *culprit, const GovernorBlame *blame)
{
	ereport(LOG,
			(errmsg(culprit->verdict == GOVERNOR_VERDICT_CANCELLED ?
					"pg_governor: cancelled the transaction of process %d, which has kept %.1f of %u slots of class \"%s\" in pool \"%s\" for %lld ms while %u sessions queue or were let in beyond the limit" :
					"pg_governor: would cancel the transaction of process %d, which has kept %.1f of %u slots of class \"%s\" in pool \"%s\" for %lld ms while %u sessions queue or were let in beyond the limit",
					culprit->pid, blame->slots, blame->taken,
					governor_class_names[governor_class_of_gate(culprit->gate)],
					governor_pool_of_gate(culprit->gate)->name, (long long) (blame->for_us / 1000), blame->waiters),
			 errdetail("Its application is \"%s\", and its query identifier is %lld.", culprit->application,
					   (long long) culprit->query_id)));
}

void
governor_ledger_reset(void)
{
	LWLockAcquire(governor->registry_lock, LW_EXCLUSIVE);
	memset(governor->culprits, 0, sizeof(governor->culprits));
	LWLockRelease(governor->registry_lock);
}

/* The one that has kept most comes first. */
Datum
pg_governor_culprits(PG_FUNCTION_ARGS)
{
	GovernorRows rows = governor_rows_begin(fcinfo, culprits_columns);
	GovernorCulprit *culprits = palloc(sizeof(governor->culprits));

	LWLockAcquire(governor->registry_lock, LW_SHARED);
	memcpy(culprits, governor->culprits, sizeof(governor->culprits));
	LWLockRelease(governor->registry_lock);
	qsort(culprits, GOVERNOR_CULPRITS, sizeof(GovernorCulprit), compare);
	for (int i = 0; i < GOVERNOR_CULPRITS && culprits[i].pid != 0; i++)
		put_culprit(&rows, &culprits[i]);
	return (Datum) 0;
}

static int
compare(const void *a, const void *b)
{
	const GovernorCulprit *left = a;
	const GovernorCulprit *right = b;

	if ((left->pid == 0) != (right->pid == 0))
		return left->pid == 0 ? 1 : -1;
	if (left->slot_us != right->slot_us)
		return left->slot_us > right->slot_us ? -1 : 1;
	return 0;
}

static void
put_culprit(const GovernorRows *rows, const GovernorCulprit *culprit)
{
	Datum		values[lengthof(culprits_columns)];
	bool		nulls[lengthof(culprits_columns)] = {false};
	char	   *role = GetUserNameFromId(culprit->role, true);
	int			column = 0;

	nulls[column] = role == NULL;
	values[column++] = role == NULL ? (Datum) 0 : DirectFunctionCall1(namein, CStringGetDatum(role));
	values[column++] = CStringGetTextDatum(culprit->application);
	nulls[column] = culprit->query_id == 0;
	values[column++] = Int64GetDatum(culprit->query_id);
	values[column++] = CStringGetTextDatum(culprit->pool);
	values[column++] = CStringGetTextDatum(governor_class_names[governor_class_of_gate(culprit->gate)]);
	values[column++] = Float8GetDatum(culprit->slot_us / 1e6);
	values[column++] = Float8GetDatum(culprit->waiter_us / 1e6);
	values[column++] = Int64GetDatum(culprit->transactions);
	values[column++] = Int64GetDatum(culprit->cancelled);
	values[column++] = Int64GetDatum(culprit->named);
	values[column++] = Int32GetDatum(culprit->pid);
	values[column++] = Float8GetDatum(culprit->slots);
	values[column++] = TimestampTzGetDatum(culprit->seen_at);
	values[column++] = CStringGetTextDatum(verdicts[culprit->verdict]);
	Assert(column == lengthof(culprits_columns));
	governor_rows_put(rows, values, nulls);
}
