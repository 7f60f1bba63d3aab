/*
 * choice.c
 *		The pool that a rule chooses for a transaction of this session: what rule.c has to know of the
 *		session and its statement, and what the rules have done.
 *
 * The statement that decides for a transaction is the client's own, before it is planned or when it begins to execute by a plan
 * that was made before: its query identifier is known by then, and what functions and triggers execute inside is not asked.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "libpq/libpq-be.h"
#include "utils/builtins.h"

#include "choice.h"
#include "pool.h"
#include "rows.h"
#include "rule.h"
#include "standing.h"

PG_FUNCTION_INFO_V1(pg_governor_rules);

static const GovernorColumn rules_columns[] = {
	{"place", INT4OID},
	{"pool", TEXTOID},
	{"conditions", TEXTOID},
	{"chosen", INT8OID},
	{"denied", INT8OID},
};

static char role[NAMEDATALEN];
static bool is_superuser;

static int	read_tags(const GovernorStatement *statement, GovernorTag *tags);
static GovernorSpan span_of(const GovernorStatement *statement);
static int	pool_of(int rule);

/* Who the session is, when that has changed. */
void
governor_choice_identify(Oid session_user)
{
	governor_standing_name(session_user, role);
	is_superuser = governor_standing_is_superuser(session_user);
}

/* The cheap question, which every transaction asks. */
bool
governor_choice_is_any(void)
{
	return governor_rules != NULL && governor_rules->count > 0;
}

GovernorChoice
governor_choice_of(const GovernorStatement *statement)
{
	GovernorChoice choice = {GOVERNOR_NO_POOL, GOVERNOR_NO_RULE, GOVERNOR_NO_RULE};
	GovernorTag tags[2 * GOVERNOR_TAGS_MAX];
	GovernorFacts facts = {.role = role, .database = MyProcPort->database_name,
		.application = application_name != NULL ? application_name : "", .is_superuser = is_superuser,
	.query_id = statement->query_id, .tags = tags, .tag_count = read_tags(statement, tags)};

	choice.is_tagged = facts.tag_count > 0;
	for (int i = 0; i < governor_rules->count; i++)
	{
		const GovernorRule *rule = &governor_rules->rules[i];

		switch (governor_rule_judge(rule, &facts))
		{
			case GOVERNOR_RULE_HOLDS:
				choice.pool = pool_of(i);
				/* A pool that is not listed is told of in pg_governor_health. */
				if (choice.pool == GOVERNOR_NO_POOL)
					continue;
				choice.rule = i;
				return choice;
			case GOVERNOR_RULE_DENIED:
				if (choice.denied == GOVERNOR_NO_RULE)
					choice.denied = i;
				break;
			case GOVERNOR_RULE_MISSES:
				choice.may_follow = choice.may_follow || governor_rule_waits_for(rule, &facts);
				break;
		}
	}
	return choice;
}

/* Those of EXECUTE or EXPLAIN come before those of what it executes. */
static int
read_tags(const GovernorStatement *statement, GovernorTag *tags)
{
	int			count = 0;

	if (!governor_rules_have(GOVERNOR_ON_TAG))
		return 0;
	if (statement->outer != NULL)
		count = governor_comment_tags(statement->outer->text, span_of(statement->outer), tags, GOVERNOR_TAGS_MAX);
	return count + governor_comment_tags(statement->text, span_of(statement), tags + count, GOVERNOR_TAGS_MAX);
}

static GovernorSpan
span_of(const GovernorStatement *statement)
{
	const char *begin = statement->text + Max(0, statement->location);

	return (GovernorSpan)
	{
		begin, begin + (statement->length > 0 ? strnlen(begin, statement->length) : strlen(begin))
	};
}

/* Looked up once for each change of the pools or the rules. */
static int
pool_of(int rule)
{
	static int	pools[GOVERNOR_RULES_MAX];
	static uint32 generation = 0;
	static uint64 fingerprint = 0;
	uint32		now = pg_atomic_read_u32(&governor->pools_generation);

	if (generation != now || fingerprint != governor_rules->fingerprint)
	{
		for (int i = 0; i < governor_rules->count; i++)
			pools[i] = governor_pool_find(governor_rules->rules[i].pool);
		generation = now;
		fingerprint = governor_rules->fingerprint;
	}
	return pools[rule];
}

/* While this session has other rules than the monitor, for a moment after a reload, nothing is counted. */
void
governor_choice_count(const GovernorChoice *choice)
{
	if (pg_atomic_read_u64(&governor->rules_fingerprint) != governor_rules->fingerprint)
		return;
	if (choice->rule != GOVERNOR_NO_RULE)
		pg_atomic_fetch_add_u64(&governor->rule_counts[choice->rule].chosen, 1);
	else if (choice->denied != GOVERNOR_NO_RULE)
		pg_atomic_fetch_add_u64(&governor->rule_counts[choice->denied].denied, 1);
}

/* By the monitor, after a reload: other rules begin at zero. */
void
governor_choice_publish(void)
{
	uint64		fingerprint = governor_rules != NULL ? governor_rules->fingerprint : 0;

	if (pg_atomic_read_u64(&governor->rules_fingerprint) == fingerprint)
		return;
	governor_choice_reset();
	pg_write_barrier();
	pg_atomic_write_u64(&governor->rules_fingerprint, fingerprint);
}

void
governor_choice_reset(void)
{
	for (int i = 0; i < GOVERNOR_RULES_MAX; i++)
	{
		pg_atomic_write_u64(&governor->rule_counts[i].chosen, 0);
		pg_atomic_write_u64(&governor->rule_counts[i].denied, 0);
	}
}

/* In their order; the counts are null while the monitor has other rules. */
Datum
pg_governor_rules(PG_FUNCTION_ARGS)
{
	GovernorRows rows = governor_rows_begin(fcinfo, rules_columns);
	bool		counted = governor_rules != NULL &&
		pg_atomic_read_u64(&governor->rules_fingerprint) == governor_rules->fingerprint;

	for (int i = 0; governor_rules != NULL && i < governor_rules->count; i++)
	{
		Datum		values[lengthof(rules_columns)];
		bool		nulls[lengthof(rules_columns)] = {false};
		int			column = 0;

		values[column++] = Int32GetDatum(i + 1);
		values[column++] = CStringGetTextDatum(governor_rules->rules[i].pool);
		values[column++] = CStringGetTextDatum(governor_rules->rules[i].text);
		nulls[column] = !counted;
		values[column++] = Int64GetDatum(pg_atomic_read_u64(&governor->rule_counts[i].chosen));
		nulls[column] = !counted;
		values[column++] = Int64GetDatum(pg_atomic_read_u64(&governor->rule_counts[i].denied));
		Assert(column == lengthof(rules_columns));
		governor_rows_put(&rows, values, nulls);
	}
	return (Datum) 0;
}
