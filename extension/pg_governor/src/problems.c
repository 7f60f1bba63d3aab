/*
 * problems.c
 *		Settings that change nothing, and what else an administrator has to know.  They
 *		are in the log after a start and a reload, and in pg_governor_health.
 */
#include "compat.h"

#include "lib/stringinfo.h"

#include "doze.h"
#include "problems.h"

#include "list.h"
#include "pool.h"
#include "rule.h"
#include "settings.h"
#include "state.h"

static List *find_in_settings(void);
static List *find_in_rules(List *found);
static bool any_limit(GovernorClass first, GovernorClass last);
static bool any_policy(GovernorPolicy policy);
static bool any_endless_wait(void);
static List *add(List *problems, bool there, char *text);

/* Texts, in the current memory context; the same whoever asks. */
List *
governor_problems_find(void)
{
	List	   *found = NIL;
	uint32		unknown = pg_atomic_read_u32(&governor->unknown_sessions);
	char		of_settings[GOVERNOR_PROBLEMS_SIZE];
	char	   *rest = of_settings;
	char	   *line;

	if (governor->pools_without_room > 0)
		found = lappend(found, psprintf("%u pools of pg_governor.pools have no room: increase pg_governor.max_pools",
										governor->pools_without_room));
	if (unknown > 0)
		found = lappend(found, psprintf("pg_governor.pool named a pool that pg_governor.pools does not list %u times, the last one was \"%s\"",
										unknown, governor->unknown_pool));
	found = add(found, governor_doze_monitor_is_gone() && pg_atomic_read_u32(&governor->strict) != 0,
				"the monitor has been silent for more than 5 seconds, and pg_governor.strict lets nobody in without it");
	LWLockAcquire(governor->registry_lock, LW_SHARED);
	strlcpy(of_settings, governor->setting_problems, sizeof(of_settings));
	LWLockRelease(governor->registry_lock);
	while ((line = strsep(&rest, "\n")) != NULL)
		if (*line != '\0')
			found = lappend(found, pstrdup(line));
	return found;
}

/* Settings that change nothing, by the values of this process. */
static List *
find_in_settings(void)
{
	List	   *found = NIL;
	bool		limited = any_limit(GOVERNOR_QUERY, GOVERNOR_AUTOCOMMIT);
	bool		privileged = governor_reserved_roles != NULL && governor_reserved_roles->count > 0;

	found = add(found, !governor_gate_autocommit &&
				(any_limit(GOVERNOR_QUERY, GOVERNOR_BIG_QUERY) || any_limit(GOVERNOR_AUTOCOMMIT, GOVERNOR_AUTOCOMMIT)),
				"limits of classes query, big_query and autocommit change nothing where pg_governor.gate_autocommit is off");
	found = add(found, !governor_gate_begin && any_limit(GOVERNOR_TRANSACTION, GOVERNOR_TRANSACTION),
				"limits of class transaction change nothing where pg_governor.gate_begin is off");
	found = add(found, !limited && governor_total_limit > 0,
				"pg_governor.total_limit changes nothing, since no class has a limit");
	found = add(found, !limited && governor_role_share < 100,
				"pg_governor.role_share changes nothing, since no class has a limit");
	found = add(found, !limited && governor_max_queue > 0,
				"pg_governor.max_queue changes nothing, since no class has a limit");
	found = add(found, !limited && governor_cancel_culprit != GOVERNOR_CULPRIT_OFF,
				"pg_governor.cancel_culprit changes nothing, since no class has a limit");
	found = add(found, !limited && governor_runnable_per_cpu > 0,
				"pg_governor.runnable_per_cpu changes nothing, since no class has a limit");
	found = add(found, governor_strict && governor_overload_factor != 8,
				"pg_governor.overload_factor changes nothing, since pg_governor.strict is on");
	found = add(found, !limited && governor_find_limit,
				"pg_governor.find_limit changes nothing, since no class has a limit");
	found = add(found, governor_find_limit && governor_runnable_per_cpu > 0,
				"pg_governor.runnable_per_cpu changes nothing, since pg_governor.find_limit moves the limit");
	found = add(found, !governor_strict && governor_overload_factor != 8 && governor_find_limit,
				"pg_governor.overload_factor changes nothing, since pg_governor.find_limit moves the limit");
	found = add(found, !governor_strict && governor_overload_factor != 8 && governor_runnable_per_cpu > 0,
				"pg_governor.overload_factor changes nothing, since pg_governor.runnable_per_cpu moves the limit");
	found = add(found, governor_strict && limited && any_endless_wait(),
				"with pg_governor.strict and no queue_timeout that ends in an error, a session with a slot that connects to this server through a pooler waits for ever if that connection queues");
	found = add(found, governor_strict && governor_hard_max_factor != 3,
				"pg_governor.hard_max_factor changes nothing, since pg_governor.strict is on");
	found = add(found, governor_long_limit >= 0 &&
				(governor_strict || (governor_long_time_ms == 0 && governor_long_elapsed_time_ms == 0)),
				"pg_governor.long_limit changes nothing, since no transaction is taken for long");
	found = add(found, privileged && governor_reserved_slots == 0,
				"pg_governor.reserved_roles changes nothing but pauses, since pg_governor.reserved_slots is 0");
	found = add(found, governor_unevenness != 8 && !any_policy(GOVERNOR_THROUGHPUT),
				"pg_governor.unevenness changes nothing, since no pool has the policy throughput");
	found = add(found, (governor_codel_target_ms != 200 || governor_codel_interval_ms != 2000) &&
				!any_policy(GOVERNOR_CODEL),
				"pg_governor.codel_target and codel_interval change nothing, since no pool has the policy codel");
	return find_in_rules(found);
}

static List *
find_in_rules(List *found)
{
	for (int i = 0; governor_rules != NULL && i < governor_rules->count; i++)
		if (governor_pool_find(governor_rules->rules[i].pool) == GOVERNOR_NO_POOL)
			found = lappend(found, psprintf("rule %d of pg_governor.pool_rules chooses nothing, since pg_governor.pools does not list \"%s\"",
											i + 1, governor_rules->rules[i].pool));
	return add(found, governor_rules_have(GOVERNOR_ON_QUERY_ID) && !governor_query_ids_are_computed(),
			   "rules of pg_governor.pool_rules by query_id choose nothing where compute_query_id is off, or auto without pg_stat_statements or another library that asks for it");
}

/* By the monitor, at its start and after a reload: its settings are the server's own. */
void
governor_problems_publish(void)
{
	List	   *problems = find_in_settings();
	StringInfoData text;
	ListCell   *cell;

	initStringInfo(&text);
	foreach(cell, problems)
		appendStringInfo(&text, "%s\n", (char *) lfirst(cell));
	LWLockAcquire(governor->registry_lock, LW_EXCLUSIVE);
	strlcpy(governor->setting_problems, text.data, GOVERNOR_PROBLEMS_SIZE);
	LWLockRelease(governor->registry_lock);
	pfree(text.data);

	foreach(cell, governor_problems_find())
		ereport(WARNING, (errmsg("pg_governor: %s", (char *) lfirst(cell))));
}

static List *
add(List *problems, bool there, char *text)
{
	return there ? lappend(problems, text) : problems;
}

static bool
any_limit(GovernorClass first, GovernorClass last)
{
	for (int pool = 0; pool < governor->pool_count; pool++)
		for (int class = first; class <= (int) last; class++)
			if (governor_pool_is_used(pool) &&
				pg_atomic_read_u32(&governor->pools[pool].gates[class].limit) > 0)
				return true;
	return false;
}

static bool
any_policy(GovernorPolicy policy)
{
	for (int pool = 0; pool < governor->pool_count; pool++)
		if (governor_pool_is_used(pool) && pg_atomic_read_u32(&governor->pools[pool].policy) == (uint32) policy)
			return true;
	return false;
}

static bool
any_endless_wait(void)
{
	for (int pool = 0; pool < governor->pool_count; pool++)
		if (governor_pool_is_used(pool) &&
			(pg_atomic_read_u32(&governor->pools[pool].queue_timeout_ms) == 0 ||
			 pg_atomic_read_u32(&governor->pools[pool].on_timeout) == GOVERNOR_TIMEOUT_WAIT))
			return true;
	return false;
}
